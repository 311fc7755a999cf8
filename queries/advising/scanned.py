"""What to write where a loop takes an array in and gives it out beside, as `jax.lax.scan` does."""

CARRY = (
    "carry it through the loop instead of taking it in as xs and giving it out as ys, and write"
    " each part with jax.lax.dynamic_update_slice or .at[i].set"
)
