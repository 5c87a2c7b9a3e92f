"""The student of the warm start: a tokenizer for this project's pages, and a small Llama wired to copy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 2048
LAYERS, WIDTH, HEADS, INNER, POSITIONS, ROPE = 4, 256, 4, 640, 2048, 10_000_000.0
OFFSETS = (1, 2, 3)
"""How many tokens back the heads of the first layer begin by looking; one more takes the last ten together."""
LATELY = -1
MATCHES = ((2.2, (0,)), (1.6, (1, LATELY)), (2.0, (0, 1, 2)))
"""The second layer's wired heads: their gain, and which of the tokens up to here they begin by finding again.

(1, LATELY) is what a value's place has in common in a row and in a thought that copies the row: its label, one
separator back, and most of what stood before.
"""

# --- tokenizer ---------------------------------------------------------------------------------------------------

END = "<|end|>"
SPECIAL = ("<|pad|>", END, "<|system|>", "<|user|>", "<|assistant|>")
# Rendering k messages and the generation prompt gives the beginning of rendering k + 1 messages: nothing is trimmed.
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# What may become one token. Words have no space in them, so that a value is the same tokens in a goal, a page and an
# action, and copying is all there is to learn; numbers up to 99 are one piece; so are runs of page syntax.
_PIECES = "|".join(
    (
        r"</?think>\n?",
        r"'?\n(?:[a-z]+: )(?:(?:text|number|date|select|radio|checkbox|button|reset|submit|textarea|readonly) )*'?",
        r"'?(?:\n(?:[-=+][0-9]+ )?\t*\[?)",  # end of a line and beginning of the next
        r"\] [A-Za-z]+ '",  # role
        r"(?:StaticText|RootWebArea) '",
        r"'?(?:, (?:focused|disabled|selected|(?:readonly|multiline|expanded|checked)=(?:True|False)))+(?:, value=')?",
        r"'?, value='",
        r"' (?:=|->|of|') '|'(?: of)? '|'\)|, '",
        r"[a-z_]{4,}\('?",  # the beginning of an action
        r" (?:and|or|the|to|of|in|is|a|with|that|from|by|as|for|at|not) ",
        r"[.,:;] | \| ",
        r"[A-Za-z]+",
        r"[0-9]{1,2}",  # small numbers are one token, bids and values alike
        r"\s+",
        r"[^\sA-Za-z0-9]",
    )
)


def make_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE (any text can be encoded, and decodes to itself) trained on the texts, and on numbers."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        min_frequency=4,
    )

    def corpus() -> Iterator[str]:
        yield from texts
        for number in range(100):
            yield from [f"{number} 1{number:02} x"] * 20

    tokenizer.train_from_iterator(corpus(), trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=SPECIAL[0],
        eos_token=END,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=POSITIONS,
    )


# --- model -------------------------------------------------------------------------------------------------------


def make_model(vocabulary: int, seed: int) -> LlamaForCausalLM:
    """A small Llama whose first two layers begin as what copying needs, then are trained like all else.

    From a plain start copying emerges late or, on full pages, not at all. So the first layer's heads begin by looking a
    fixed number of tokens back (`OFFSETS`), and heads of the second by finding the place before which the same tokens
    stood (`MATCHES`), whose token they copy: induction circuits. The attention by distance is made of rotary phases,
    from a constant that all embeddings share.
    """
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=POSITIONS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE},
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=1,
        rms_norm_eps=1e-5,
    )
    model = LlamaForCausalLM(config)
    for name, p in model.named_parameters():
        if p.dim() == 2:
            scale = 1 / math.sqrt(2 * LAYERS) if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
            nn.init.normal_(p, 0.0, 0.02 * scale if "embed" not in name else 0.04)
    size = WIDTH // HEADS
    half = size // 2
    theta = ROPE ** (-torch.arange(half) / half)
    # Where a match is to be found at any distance, only rotations too slow to be felt over a page may be used.
    slow = torch.cat([torch.arange(half)[theta < 0.004], half + torch.arange(half)[theta < 0.004]])
    slow = slow[torch.randperm(len(slow))]
    fast = 6  # so many of the fastest rotations tell neighbouring distances apart

    def frame() -> Tensor:
        """Orthonormal rows (size, WIDTH) that leave the constant out."""
        rows = torch.zeros(size, WIDTH)
        rows[:, 1:] = torch.linalg.qr(torch.randn(WIDTH - 1, size))[0].T
        return rows

    with torch.no_grad():
        embedding = model.model.embed_tokens.weight
        embedding[:, 0] = 0.25  # the constant
        first, second = model.model.layers[0].self_attn, model.model.layers[1].self_attn
        share = 0.25 * math.sqrt(WIDTH) / math.sqrt(0.25**2 + WIDTH * 0.04**2)  # of the constant, after the norm
        sharp = math.sqrt(8.0 * math.sqrt(size)) / share
        here, back = frame(), {offset: frame() for offset in (*OFFSETS, LATELY)}
        for head, offset in enumerate(back):
            rows = slice(head * size, (head + 1) * size)
            for w in (first.q_proj.weight, first.k_proj.weight):
                w[rows] *= 0.1
            # One rotation after the other narrows the peak; a wide one, five back, needs only slower ones.
            sharpness, distance = (sharp, offset) if offset != LATELY else (sharp / math.sqrt(2), 5)
            for i in range(fast) if offset != LATELY else range(3, 7):
                first.q_proj.weight[head * size + i, 0] = sharpness
                first.k_proj.weight[head * size + i, 0] = sharpness * math.cos(distance * theta[i])
                first.k_proj.weight[head * size + half + i, 0] = sharpness * math.sin(distance * theta[i])
            first.v_proj.weight[rows] = here
            first.o_proj.weight[:, rows] = (0.12 if offset != LATELY else 0.3) * back[offset].T
        back[0] = here
        for head, (gain, offsets) in enumerate(MATCHES):
            rows = slice(head * size, (head + 1) * size)
            second.q_proj.weight[rows] *= 0.1
            second.k_proj.weight[rows] *= 0.1
            for offset, dims in zip(offsets, slow.chunk(len(offsets)), strict=True):
                # The same rows of both frames, so that equal tokens give equal vectors.
                there = offset + 1 if offset != LATELY else LATELY
                second.q_proj.weight[head * size + dims] = gain * back[offset][: len(dims)]
                second.k_proj.weight[head * size + dims] = gain * back[there][: len(dims)]
            copied = frame()
            second.v_proj.weight[rows] = copied
            second.o_proj.weight[:, rows] = 0.12 * copied.T
    return model
