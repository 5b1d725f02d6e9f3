"""The picture of the layers, drawn from the import contract in ``pyproject.toml``."""

import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
WIDTH, HEIGHT, GAP = 720, 40, 16


def read_layers() -> list[list[str]]:
    """Return the rooms of each layer, the topmost first."""
    contracts = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(c["layers"] for c in contracts["contracts"] if c["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layers]


def draw(layers: list[list[str]]) -> str:
    """Return an SVG in the colours of the page, so that it is right in light and dark."""
    shapes = []
    for row, rooms in enumerate(layers):
        width = (WIDTH - GAP * (len(rooms) - 1)) / len(rooms)
        y = row * (HEIGHT + GAP) + 1
        for column, room in enumerate(rooms):
            x = column * (width + GAP) + 1
            shapes.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width - 2:.0f}" height="{HEIGHT}" rx="6"/>'
                f'<text x="{x + width / 2:.0f}" y="{y + HEIGHT / 2 + 5:.0f}">{room}</text>'
            )
        if row + 1 < len(layers):
            top, middle = y + HEIGHT, WIDTH / 2
            shapes.append(f'<path d="M{middle} {top}v{GAP - 3}m-4 -5l4 5l4 -5"/>')
    height = len(layers) * (HEIGHT + GAP) - GAP + 2
    return (
        f'<svg class="layers" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The layers of the package; each imports only those below it">'
        f"{''.join(shapes)}</svg>"
    )


class Layers(SphinxDirective):
    """``{layers}``: the rooms of the package, each above those that it may import."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(PYPROJECT))
        return [nodes.raw("", draw(read_layers()), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
