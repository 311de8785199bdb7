"""A lane for each worker, drawn with characters: claims as bars, what happened as marks, over an axis of time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, NamedTuple

from coordinator.clock import to_datetime
from coordinator.printable import columns, cut, pad, printable
from coordinator.sentences import subject_of
from coordinator.surfaces.colours import Colours
from coordinator.surfaces.picture import TROUBLE, Bar, Kind, Lane, Picture

_NARROWEST: Final = 20
_NAME: Final = 20
_ROWS: Final = 6
_LABEL: Final = 6  # a label that has to be cut shorter says nothing
_TICK: Final = 14
_MS, _SECOND, _MINUTE, _HOUR, _DAY = 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_STEPS: Final = tuple(
    [ms * _MS for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    + [s * _SECOND for s in (1, 2, 5, 10, 15, 30)]
    + [m * _MINUTE for m in (1, 2, 5, 10, 15, 30)]
    + [h * _HOUR for h in (1, 2, 3, 6, 12)]
    + [d * _DAY for d in (1, 2, 7, 14, 30, 90, 365)]
)
_COLOURS: Final[dict[Kind, str]] = {
    "submitted": "cyan",
    "failed": "yellow",
    "lapsed": "yellow",
    "revoked": "yellow",
    "accepted": "green",
    "rejected": "yellow",
    "refused": "red",
}
_MEANING: Final[dict[Kind, str]] = {
    "claimed": "claimed",
    "renewed": "renewed",
    "noted": "noted",
    "reserved": "reserved more",
    "submitted": "submitted",
    "failed": "failed",
    "released": "released",
    "lapsed": "lapsed",
    "revoked": "revoked or stopped",
    "cancelled": "cancelled",
    "held": "still held",
    "accepted": "accepted",
    "rejected": "rejected",
    "refused": "refused",
}


class Symbols(NamedTuple):
    """The characters that are drawn with, all one column wide."""

    fill: str
    rule: str
    tick: str
    nobody: str
    marks: dict[Kind, str]

    @property
    def all(self) -> str:
        return self.fill + self.rule + self.tick + self.nobody + "".join(self.marks.values())


_KINDS: Final = tuple(_MEANING)
UNICODE: Final = Symbols("━", "─", "┬", "–", dict(zip(_KINDS, "┣•◆+▶✗◁╳⊘⊗▷✔✘!", strict=True)))  # noqa: RUF001
ASCII: Final = Symbols("=", "-", "+", "-", dict(zip(_KINDS, "[.*+SF<XVC>AJ!", strict=True)))

Cell = tuple[str, str | None]
"""A character and its colour. Behind a character of two columns stands an empty one."""

_Row = dict[int, Cell]


def lanes(picture: Picture, width: int, symbols: Symbols, colours: Colours) -> Iterator[str]:
    """The lines of the drawing.

    Args:
        width: columns of the terminal.
    """
    if picture.first is None:
        return
    names = max((columns(cut(name, _NAME)) for name in picture.lanes), default=0)
    scale = _Scale(picture.first, picture.last, max(width - names - 2, _NARROWEST))
    begins, ends = (to_datetime(at).astimezone() for at in (picture.first, picture.last))
    yield colours.paint(f"{begins:%Y-%m-%d %H:%M:%S} to {ends:%Y-%m-%d %H:%M:%S} (UTC{begins:%z})", "bold")
    yield ""
    for line in scale.axis(symbols):
        yield " " * (names + 2) + colours.paint(line, "dim")
    kinds, left_out = set[Kind](), 0
    for name, lane in picture.lanes.items():
        rows, more = _rows(lane, scale, symbols, kinds)
        left_out += more
        for number, row in enumerate(rows):
            named = pad(cut(name, _NAME), names) if number == 0 else " " * names
            yield f"{named}  {_text(row, scale.width, colours)}".rstrip()
    yield ""
    yield from _wrapped([f"{symbols.marks[kind]} {_MEANING[kind]}" for kind in _KINDS if kind in kinds], width)
    if left_out:
        yield f"{left_out:,} more lie on the same places: narrow it down with --job, --actor, --since or --until"
    yield from _troubles(picture, symbols, colours)


class _Scale:
    """Where in the plot a moment lies."""

    def __init__(self, first: int, last: int, width: int) -> None:
        self.first, self.last, self.width = first, last, width
        self._span = max(last - first, 1)

    def x(self, at: int) -> int:
        at = min(max(at, self.first), self.last)
        return (at - self.first) * (self.width - 1) // self._span

    def axis(self, symbols: Symbols) -> tuple[str, str]:
        """Times, and a ruler below them. Ticks lie on round local times."""
        most = max(self.width // _TICK, 1)
        step = next((step for step in _STEPS if self._span / step <= most), _STEPS[-1])
        here = to_datetime(self.first).astimezone().utcoffset() or timedelta()
        offset = here // timedelta(microseconds=1)
        times, ruler = "", list(symbols.rule * self.width)
        for at in range(-(-(self.first + offset) // step) * step - offset, self.last + 1, step):
            x, label = self.x(at), _tick(at, step)
            ruler[x] = symbols.tick
            if x + len(label) <= self.width and (not times or x > len(times)):
                times += " " * (x - len(times)) + label
        return times, "".join(ruler)


def _tick(at: int, step: int) -> str:
    local = to_datetime(at).astimezone()
    if step >= _DAY:
        return f"{local:%m-%d}"
    if step >= _MINUTE:
        return f"{local:%H:%M}"
    return f"{local:%H:%M:%S}" if step >= _SECOND else f"{local:%H:%M:%S}.{local.microsecond // 1000:03}"


def _rows(lane: Lane, scale: _Scale, symbols: Symbols, kinds: set[Kind]) -> tuple[list[_Row], int]:
    """The rows of a lane, and how much finds no place: what went wrong is placed first."""
    pieces: list[tuple[Kind, int, _Row]] = []
    for bar in lane.bars:
        kinds.update([bar.how, *(mark.kind for mark in bar.marks)])
        if bar.start is not None:
            kinds.add("claimed")
        piece = _bar(bar, scale, symbols)
        pieces.append((bar.how, min(piece), piece))
    for mark in lane.marks:
        kinds.add(mark.kind)
        x = scale.x(mark.at)
        pieces.append((mark.kind, x, {x: _cell(mark.kind, symbols)}))
    rows: list[_Row] = [{}]
    left_out = 0
    for _, _, piece in sorted(pieces, key=lambda piece: (piece[0] not in TROUBLE, piece[1])):
        row = next((row for row in rows if not row.keys() & piece.keys()), None)
        if row is None and len(rows) < _ROWS:
            rows.append(row := {})
        if row is None:
            left_out += 1
        else:
            row |= piece
    return rows, left_out


def _bar(bar: Bar, scale: _Scale, symbols: Symbols) -> _Row:
    """From its start to its end, with its name if that has room, and marks where nothing else stands."""
    colour = _COLOURS.get(bar.how)
    first = 0 if bar.start is None else scale.x(bar.start)
    last = scale.width - 1 if bar.end is None else max(scale.x(bar.end), first)
    row: _Row = dict.fromkeys(range(first, last), (symbols.fill, colour))
    if bar.start is not None:
        row[first] = (symbols.marks["claimed"], colour)
    free = _write(row, printable(bar.label), first + 1, last - 1)
    for mark in bar.marks:
        x = max(scale.x(mark.at), free)
        if x < last and row[x][0] == symbols.fill:
            row[x] = _cell(mark.kind, symbols)
    row[last] = _cell(bar.how, symbols)
    return row


def _write(row: _Row, label: str, x: int, end: int) -> int:
    """A label from `x` to before `end`, with what is left of it; where it ends."""
    room = end - x
    if room < min(columns(label), _LABEL):
        return x
    while columns(label) > room:
        label = cut(label[:-1], max(len(label) - 2, 1)) if label.endswith("…") else cut(label, len(label) - 1)
    for character in label:
        width = columns(character)
        if width == 0:
            row[x - 1] = (row[x - 1][0] + character, None)
        else:
            row |= {x: (character, None)} | ({x + 1: ("", None)} if width == 2 else {})
        x += width
    return x


def _cell(kind: Kind, symbols: Symbols) -> Cell:
    return symbols.marks[kind], _COLOURS.get(kind)


def _text(row: _Row, width: int, colours: Colours) -> str:
    return "".join(colours.paint(*row[x]) if x in row else " " for x in range(width))


def _wrapped(words: list[str], width: int) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + 3 + len(word) > width:
            yield line
            line = ""
        line += f"   {word}" if line else word
    if line:
        yield line


def _troubles(picture: Picture, symbols: Symbols, colours: Colours) -> Iterator[str]:
    if picture.troubles:
        yield ""
    for told in picture.troubles:
        local = to_datetime(told.row.at).astimezone()
        actor = printable(told.row.actor or symbols.nobody)
        subject = subject_of(told.row.stream)
        told_so = colours.of_type(told.sentence, told.row.type)
        yield f"{told.row.position:>6}  {local:%H:%M:%S}  {actor}  {subject}  {told_so}"
