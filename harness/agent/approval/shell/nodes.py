"""A syntax tree of our own, copied from tree-sitter's right after parsing.

Nothing of tree-sitter outlives the parse: its Python nodes were seen to crash the interpreter when they are freed late, as
an exception's frames do (py-tree-sitter issue 472 tells of the same in 0.26), and a crash here would end a run.
"""

from dataclasses import dataclass, field

from tree_sitter import Node as TheirNode
from tree_sitter import Tree


@dataclass(frozen=True, eq=False)
class Node:
    """A node: bytes `start_byte` to `end_byte` of `source`; `row` counts lines from 0. Compared by identity."""

    type: str
    is_named: bool
    start_byte: int
    end_byte: int
    row: int
    source: bytes = field(repr=False)
    children: list["Node"] = field(default_factory=list, repr=False)

    @property
    def named_children(self) -> list["Node"]:
        return [child for child in self.children if child.is_named]

    @property
    def text(self) -> str:
        return self.source[self.start_byte : self.end_byte].decode("utf-8")


def copied(tree: Tree, source: bytes) -> Node:
    """Return the root of a copy of `tree`, parsed from `source`."""

    def bare(theirs: TheirNode) -> Node:
        place = (theirs.start_byte, theirs.end_byte, theirs.start_point.row)
        return Node(theirs.type, theirs.is_named, *place, source)

    root = bare(tree.root_node)
    waiting = [(tree.root_node, root)]
    while waiting:
        theirs, ours = waiting.pop()
        for child in theirs.children:
            ours.children.append(bare(child))
            waiting.append((child, ours.children[-1]))
    return root
