"""Language models: the backbone and its adapters, engines that generate, and the policies made of both."""
