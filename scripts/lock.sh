#!/usr/bin/env bash
# Writes requirements.lock from what is installed in .venv. After changing dependencies in pyproject.toml:
# install what is new with .venv/bin/pip, run the tests, then `make lock`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

{
    echo "# Exact versions for scripts/setup.sh; written by scripts/lock.sh, not by hand."
    # Build tags such as +cpu are left out: which build of torch is taken depends on the machine.
    .venv/bin/python -m pip freeze --all --exclude-editable --exclude pip --exclude advsim 2>/dev/null |
        grep -v ' @ ' | sed 's/+[a-z0-9.]*$//' | LC_ALL=C sort -f
} >requirements.lock.new
mv requirements.lock.new requirements.lock
