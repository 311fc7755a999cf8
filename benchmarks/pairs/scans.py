"""Networks of other kinds whose layers are in a scan, without and with checkpoints."""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from .checkpoints import over_stack, remat, saving, saving_all, step_of
from .networks import (
    adam,
    attended,
    cross_entropy,
    heads_of,
    normalized,
    root_mean_square,
    rotated,
    with_moments,
)
from .registry import HALF, PAIRS, SAME, Pair, Side, pair

POLICIES = ("full", "dots", "dots_no_batch", "names")


def llama_layer(x, weights):
    """Rotations, four heads to each key, and a gated part; both parts have names."""
    normal = root_mean_square(x, weights["first_scale"])
    queries = rotated(heads_of(normal, weights["q"], 16))
    keys = rotated(heads_of(normal, weights["k"], 4))
    mixed = attended(queries, keys, heads_of(normal, weights["v"], 4), True)
    x = x + checkpoint_name(mixed @ weights["out"], "attended")
    normal = root_mean_square(x, weights["second_scale"])
    hidden = jax.nn.silu(normal @ weights["gate"]) * (normal @ weights["up"])
    return x + checkpoint_name(hidden @ weights["down"], "widened")


def llama_weights(place, layers, dtype):
    """The weights of a stack of these layers, 2048 wide."""
    shapes = {
        "q": (2048, 2048),
        "k": (2048, 512),
        "v": (2048, 512),
        "out": (2048, 2048),
        "gate": (2048, 5632),
        "up": (2048, 5632),
        "down": (5632, 2048),
        "first_scale": (2048,),
        "second_scale": (2048,),
    }
    return place.arrays({name: (layers, *shape) for name, shape in shapes.items()}, dtype)


def llama_under(policy):
    """Six such layers."""

    def make(place):
        weights, x = llama_weights(place, 6, HALF), place.array(2, 2048, 2048, dtype=HALF)
        return remat(over_stack(llama_layer), weights, x, policy)

    return make


def vision_layer(x, weights):
    """Attention among all patches, and a dense part, with biases."""
    normal = normalized(x, weights["first_scale"]) + weights["first_bias"]
    q, k, v = (heads_of(normal, weights[name], 16) for name in ("q", "k", "v"))
    x = x + attended(q, k, v, False) @ weights["out"] + weights["out_bias"]
    normal = normalized(x, weights["second_scale"]) + weights["second_bias"]
    hidden = jax.nn.gelu(normal @ weights["up"] + weights["up_bias"], approximate=False)
    return x + hidden @ weights["down"] + weights["down_bias"]


def vision_model(kept):
    """Twelve layers on patches of images."""
    layers = over_stack(vision_layer)(kept)

    def run(weights, images):
        batch = len(images)
        patches = images.reshape(batch, 24, 16, 24, 16, 3).swapaxes(2, 3).reshape(batch, 576, -1)
        x = patches @ weights["patches"] + weights["positions"]
        return layers(weights["layers"], x).mean(1) @ weights["head"]

    return run


def vision_under(policy):
    """A step of the classifier."""

    def make(place):
        square, vector = (12, 1024, 1024), (12, 1024)
        layers = {
            **dict.fromkeys(("q", "k", "v", "out"), square),
            **dict.fromkeys(("first_scale", "first_bias", "out_bias"), vector),
            **dict.fromkeys(("second_scale", "second_bias", "down_bias"), vector),
            "up": (12, 1024, 4096),
            "up_bias": (12, 4096),
            "down": (12, 4096, 1024),
        }
        rest = {"patches": (768, 1024), "positions": (576, 1024), "head": (1024, 1000)}
        weights = {"layers": place.arrays(layers, HALF)} | place.arrays(rest, HALF)
        images, targets = place.array(16, 384, 384, 3, dtype=HALF), place.array(16, 1000)
        before, after = (
            Side(step_of(vision_model(kept)), (weights, weights, images, targets), (0, 1))
            for kept in (saving_all, saving(policy))
        )
        return Pair("remat", before, after, policy)

    return make


def expert_layer(x, weights):
    """Each token goes to one of eight experts, which take as many tokens each as are shared."""
    tokens, experts = x.shape[0], weights["router"].shape[-1]
    room = tokens // experts
    normal = root_mean_square(x, weights["scale"])
    chances = jax.nn.softmax((normal @ weights["router"]).astype(jnp.float32))
    chosen = jax.nn.one_hot(jnp.argmax(chances, -1), experts)
    places = ((jnp.cumsum(chosen, 0) - 1) * chosen).sum(-1).astype(jnp.int32)
    sent = chosen[:, :, None] * jax.nn.one_hot(places, room)[:, None]
    received = jnp.einsum("tec,td->ecd", sent.astype(x.dtype), normal)
    hidden = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", received, weights["up"]))
    made = jnp.einsum("ecf,efd->ecd", hidden, weights["down"])
    weighed = (sent * jnp.max(chances, -1)[:, None, None]).astype(x.dtype)
    return x + jnp.einsum("tec,ecd->td", weighed, made)


def experts_under(policy):
    """Six layers of experts."""

    def make(place):
        shapes = {
            "scale": (6, 1024),
            "router": (6, 1024, 8),
            "up": (6, 8, 1024, 4096),
            "down": (6, 8, 4096, 1024),
        }
        weights, x = place.arrays(shapes, HALF), place.array(4096, 1024, dtype=HALF)
        return remat(over_stack(expert_layer), weights, x, policy)

    return make


PAIRS |= {f"llama_scan_{policy}": llama_under(policy) for policy in POLICIES}
PAIRS |= {f"vision_scan_{policy}": vision_under(policy) for policy in ("full", "dots")}
PAIRS |= {f"experts_scan_{policy}": experts_under(policy) for policy in ("full", "dots_no_batch")}
SAME |= {
    (f"llama_scan_{policy}", "before"): ("llama_scan_full", "before") for policy in POLICIES[1:]
}
SAME[("vision_scan_dots", "before")] = ("vision_scan_full", "before")
SAME[("experts_scan_dots_no_batch", "before")] = ("experts_scan_full", "before")


def translation_layers(kept):
    """Layers that read one sequence, then layers that write another and look at the first."""

    def among(x, weights, is_causal):
        q, k, v = (heads_of(x, weights[name], 8) for name in ("q", "k", "v"))
        return attended(q, k, v, is_causal) @ weights["out"]

    @kept
    def encode(x, weights):
        normal = normalized(x, weights["first_scale"])
        x = x + among(normal, weights, False)
        hidden = normalized(x, weights["second_scale"]) @ weights["up"]
        return x + jax.nn.relu(hidden) @ weights["down"]

    @kept
    def decode(x, weights, read):
        normal = normalized(x, weights["first_scale"])
        x = x + among(normal, weights, True)
        asked = heads_of(normalized(x, weights["cross_scale"]), weights["cross_q"], 8)
        keys, values = (heads_of(read, weights[f"cross_{name}"], 8) for name in "kv")
        x = x + attended(asked, keys, values, False) @ weights["cross_out"]
        hidden = normalized(x, weights["second_scale"]) @ weights["up"]
        return x + jax.nn.relu(hidden) @ weights["down"]

    def run(weights, both):
        read, x = both
        read = jax.lax.scan(lambda x, w: (encode(x, w), None), read, weights["encoder"])[0]
        return jax.lax.scan(lambda x, w: (decode(x, w, read), None), x, weights["decoder"])[0]

    return run


@pair
def translation_scans_full(place):
    """Six layers that encode and six that decode: two scans."""
    encoder = {
        **dict.fromkeys(("q", "k", "v", "out"), (6, 1024, 1024)),
        **dict.fromkeys(("first_scale", "second_scale"), (6, 1024)),
        "up": (6, 1024, 4096),
        "down": (6, 4096, 1024),
    }
    across = {f"cross_{name}": (6, 1024, 1024) for name in ("q", "k", "v", "out")}
    decoder = encoder | across | {"cross_scale": (6, 1024)}
    weights = {"encoder": place.arrays(encoder, HALF), "decoder": place.arrays(decoder, HALF)}
    x = place.array(8, 512, 1024, dtype=HALF)
    before, after = (
        Side(step_of(translation_layers(kept)), (weights, weights, (x, x), x), (0, 1))
        for kept in (saving_all, saving("full"))
    )
    return Pair("remat", before, after, "full")


def selective_layer(x, weights):
    """A state for each channel that goes from token to token, as the tokens themselves decide."""
    normal = root_mean_square(x, weights["scale"])
    inner, gate = jnp.split(normal @ weights["in"], 2, axis=-1)
    rate = jax.nn.softplus((inner @ weights["rate"]).astype(jnp.float32))
    enters, leaves = jnp.split((inner @ weights["through"]).astype(jnp.float32), 2, axis=-1)

    def token(state, each):
        rate, x, enters, leaves = each
        kept = jnp.exp(-rate[..., None] * jnp.exp(weights["decay"].astype(jnp.float32)))
        state = kept * state + (rate * x)[..., None] * enters[:, None]
        return state, jnp.einsum("bds,bs->bd", state, leaves)

    over_time = (each.swapaxes(0, 1) for each in (rate, inner.astype(jnp.float32), enters, leaves))
    empty = jnp.zeros((x.shape[0], inner.shape[-1], enters.shape[-1]))
    mixed = jax.lax.scan(token, empty, tuple(over_time))[1].swapaxes(0, 1).astype(x.dtype)
    return x + (mixed * jax.nn.silu(gate)) @ weights["out"]


@pair
def selective_scan_full(place):
    """Four layers, each with a scan over 256 tokens within."""
    shapes = {
        "scale": (4, 512),
        "in": (4, 512, 2048),
        "rate": (4, 1024, 1024),
        "through": (4, 1024, 32),
        "decay": (4, 1024, 16),
        "out": (4, 1024, 512),
    }
    weights, x = place.arrays(shapes, HALF), place.array(8, 256, 512, dtype=HALF)
    return remat(over_stack(selective_layer), weights, x, "full")


def linear_attention_layer(x, weights):
    """A gated linear recurrence over time, all tokens at once, and a gated dense part."""
    normal = root_mean_square(x, weights["first_scale"])
    decay = jax.nn.sigmoid((normal @ weights["decay"]).astype(jnp.float32) + 4)
    values = (normal @ weights["values"]).astype(jnp.float32) * (1 - decay)

    def joined(one, other):
        return one[0] * other[0], one[1] * other[0] + other[1]

    states = jax.lax.associative_scan(joined, (decay, values), axis=1)[1].astype(x.dtype)
    x = x + (jax.nn.sigmoid(normal @ weights["receptance"]) * states) @ weights["out"]
    normal = root_mean_square(x, weights["second_scale"])
    return x + jnp.square(jax.nn.relu(normal @ weights["up"])) @ weights["down"]


@pair
def linear_attention_scan_full(place):
    """Eight such layers on four sequences."""
    shapes = {
        **dict.fromkeys(("decay", "values", "receptance", "out"), (8, 1024, 1024)),
        **dict.fromkeys(("first_scale", "second_scale"), (8, 1024)),
        "up": (8, 1024, 4096),
        "down": (8, 4096, 1024),
    }
    weights, x = place.arrays(shapes, HALF), place.array(4, 1024, 1024, dtype=HALF)
    return remat(over_stack(linear_attention_layer), weights, x, "full")


def mixed_precision_at(place, kept):
    """A language model: weights and moments in float32, read in bfloat16 by each layer."""
    layer = kept(llama_layer)

    def loss(weights, tokens, labels):
        def body(x, each):
            return layer(x, jax.tree.map(lambda w: w.astype(jnp.bfloat16), each)), None

        x = weights["embedding"][tokens].astype(jnp.bfloat16)
        return cross_entropy(
            jax.lax.scan(body, x, weights["layers"])[0], weights["embedding"], labels
        )

    def step(state, tokens, labels):
        return adam(state, jax.grad(loss)(state["params"], tokens, labels))

    weights = {"embedding": place.array(32000, 2048), "layers": llama_weights(place, 6, "float32")}
    tokens = place.array(2, 2048, dtype="int32")
    return Side(step, (with_moments(place, weights), tokens, tokens), (0,))


@pair
def mixed_precision_scan_full(place):
    """A whole step of it, with a loss on 32000 words."""
    before, after = (mixed_precision_at(place, kept) for kept in (saving_all, saving("full")))
    return Pair("remat", before, after, "full")
