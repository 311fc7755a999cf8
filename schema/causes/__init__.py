"""Why a dump differs from another one: facts of both sides, told in a fixed order."""
