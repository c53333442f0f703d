"""Of every text of every document it is declared what may be shared of it, and no name is."""

from typing import Annotated

import msgspec
import msgspec.inspect as types
import pytest
from msgspec import to_builtins

from command_kit import called
from linkgauge.engine.kept.journal import Record, line_of, records_of
from linkgauge.engine.kept.runs import read_run
from linkgauge.machine.captures.archive import read_files
from linkgauge.machine.captures.capture import capture
from linkgauge.machine.captures.manifest import Manifest
from linkgauge.machine.captures.shared import SharedTexts
from linkgauge.machine.software import Software
from linkgauge.model.documents.result import Run
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.shareable import HostName
from linkgauge.model.transfer import Transfer
from linkgauge.report.files import write_run
from machine_kit import seen, simulated
from page_kit import files

MARKS = ("zebraMARK17", "zebra", "ZEBRA_MARK", "zebra-17.example.com", "zebra:0", "--zebra mark")
DOCUMENTS = (Run, Record, Manifest, Software, tuple[Accelerator, ...])


def parts(kind):
    """The types right inside a type."""
    match kind:
        case types.Metadata(type=inner):
            return [inner]
        case types.StructType() | types.NamedTupleType():
            return [field.type for field in kind.fields]
        case types.UnionType(types=kinds):
            return kinds
        case types.DictType():
            return [kind.key_type, kind.value_type]
        case types.VarTupleType(item_type=item):
            return [item]
        case types.TupleType(item_types=items):
            return items
    return []


def is_declared(kind):
    if isinstance(kind, types.Metadata):
        return bool(kind.extra and "text" in kind.extra)
    return hasattr(getattr(kind, "cls", None), "shared")


def undeclared(kind, place, seen):
    """The places of texts, and of anything that may hold texts, without a declaration."""
    if is_declared(kind):
        return
    if isinstance(kind, types.StructType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
        for field in kind.fields:
            yield from undeclared(field.type, f"{kind.cls.__name__}.{field.name}", seen)
        return
    if isinstance(kind, types.StrType | types.CustomType | types.AnyType | types.RawType):
        yield place
    for part in parts(kind):
        yield from undeclared(part, place, seen)


def filled(kind, mark):
    """JSON values of this type that have the mark in every text, one for each member of a union."""
    match kind:
        case types.Metadata(type=inner):
            return filled(inner, mark)
        case types.StructType():
            return filled_structs(kind, mark)
        case types.UnionType(types=kinds):
            return [value for one in kinds for value in filled(one, mark)]
        case types.DictType(key_type=key, value_type=value):
            return [dict(zip(filled(key, mark) * 9, filled(value, mark), strict=False))]
        case types.VarTupleType(item_type=item):
            return [filled(item, mark)]
        case types.TupleType() | types.NamedTupleType():
            return [[filled(one, mark)[0] for one in parts(kind)]]
    return [*plain_values(kind, mark)]


def plain_values(kind, mark):
    match kind:
        case types.StrType():
            yield mark
        case types.CustomType(cls=cls):
            yield "host:0 -> host:0 by cpu" if cls is Transfer else mark
        case types.LiteralType(values=values):
            yield values[0]
        case types.EnumType(cls=cls):
            yield next(iter(cls)).value
        case types.BoolType():
            yield True
        case types.IntType() | types.FloatType():
            yield kind.ge or 1
        case _:
            assert isinstance(kind, types.NoneType), kind


def filled_structs(kind, mark):
    values = [filled(field.type, mark) for field in kind.fields]
    names = [field.encode_name for field in kind.fields]
    rows = [
        [one[at % len(one)] for one in values] for at in range(max(map(len, values), default=1))
    ]
    if kind.array_like:
        return rows
    tag = {kind.tag_field: kind.tag} if kind.tag_field else {}
    return [tag | dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_of_every_text_it_is_declared_what_may_be_shared(document):
    assert list(undeclared(types.type_info(document), "", set())) == []


class Renewed(msgspec.Struct):
    """A document with a field that is new, and declared nowhere."""

    host: HostName
    new: str
    many: dict[str, tuple[str | None, ...]] = {}
    known: Annotated[str, msgspec.Meta(min_length=1)] = "x"


def test_a_text_without_a_declaration_is_noticed_and_left_out():
    found = list(undeclared(types.type_info(Renewed), "", set()))
    assert found == ["Renewed.new", "Renewed.many", "Renewed.many", "Renewed.known"]
    one = SharedTexts().shared(
        Renewed("web1", "zebra", {"zebra": ("zebra", None)}, "zebra"), Renewed
    )
    removed = "(removed)"
    assert one == Renewed("host-1", removed, {removed: (removed, None)}, removed)


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_no_mark_in_any_text_of_a_document_is_shared(document, mark):
    for value in filled(types.type_info(document), mark):
        made = msgspec.convert(value, document, dec_hook=decode_hook(), strict=False)
        before = msgspec.json.encode(made, enc_hook=encode_hook).decode()
        after = SharedTexts().shared(made, document)
        assert mark in before
        assert "zebra" not in msgspec.json.encode(after, enc_hook=encode_hook).decode().lower()


def is_text(kind):
    return isinstance(kind.type if isinstance(kind, types.Metadata) else kind, types.StrType)


def marked(value, kind):
    """The JSON value of this type with the mark in each of its texts. What a struct lacks is
    filled."""
    match kind:
        case types.Metadata(type=inner):
            return marked(value, inner)
        case types.StrType():
            return MARKS[0]
        case types.StructType() if isinstance(value, dict):
            for field in kind.fields:
                old = value.get(field.encode_name)
                new = filled(field.type, MARKS[0])[:1] if old is None else [marked(old, field.type)]
                value |= dict.fromkeys((field.encode_name,), new[0]) if new else {}
            return value
        case types.UnionType(types=kinds):
            return next((marked(value, one) for one in kinds if fits(value, one)), value)
        case types.DictType(key_type=key, value_type=each):
            new = {marked(name, key): marked(one, each) for name, one in value.items()}
            return new or filled(kind, MARKS[0])[0]
        case types.VarTupleType(item_type=item):
            return [marked(one, item) for one in value] or filled(kind, MARKS[0])[0] * is_text(item)
    return value


def marked_value(value, kind):
    document = marked(to_builtins(value, enc_hook=encode_hook), types.type_info(kind))
    return msgspec.convert(document, kind, dec_hook=decode_hook(), strict=False)


def fits(value, kind):
    if isinstance(kind, types.StructType):
        tag = kind.tag_field and value.get(kind.tag_field) if isinstance(value, dict) else None
        return isinstance(value, dict) and kind.tag == tag
    return is_text(kind) if isinstance(value, str) else isinstance(kind, types.VarTupleType)


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """The folder of a run that has the mark in each of its texts."""
    out = tmp_path_factory.mktemp("marked")
    asked = ("--machine", "vm-degraded", "--samples", 3, "--size", "1M", "--out", out)
    called("run", "host_to_device_memcpy_ce", "device_local_copy", *asked)
    (folder,) = out.glob("*/*/*")
    journal = folder / "journal.jsonl"
    records = [marked_value(one, Record) for one in records_of(journal.read_bytes())]
    journal.write_bytes(b"".join(piece for one in records for piece in line_of(one)))
    write_run(folder, marked_value(read_run(folder), Run))
    (folder / f"{MARKS[0]}.txt").write_text(MARKS[0])
    assert all(MARKS[0] in (folder / name).read_text() for name in ("run.json", "journal.jsonl"))
    return folder


def test_no_mark_is_on_the_page_and_its_card_or_in_the_archive(everywhere):
    page, archive = everywhere.parent / "page.html", everywhere.parent / "run.tar.zst"
    done = called("share", everywhere, "-o", page)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 6), done.stderr
    text = page.read_text()
    shown = [done.stdout, text, *map(bytes.decode, files(text).values())]
    called("pack", everywhere, "--anonymize", "-o", archive)
    packed = read_files(archive, "")
    names = {name.rpartition("/")[2] for name in packed}
    assert names == {"journal.jsonl", "run.json", "samples.bin", "samples.csv"}
    shown += [name + content.decode(errors="replace") for name, content in packed.items()]
    assert "run.json" in files(text)
    assert [one for one in shown if "zebra" in one.lower()] == []


def test_no_mark_is_in_what_a_capture_says_of_devices_and_software():
    tree = simulated("vm-degraded")
    machine = marked_value(seen(tree), Machine)
    kept = capture(tree, machine, anonymous=True)
    assert "zebra" in msgspec.json.encode(machine, enc_hook=encode_hook).decode()
    assert [path for path in kept.files if "zebra" in path.lower()] == []
    assert [path for path, text in kept.files.items() if b"zebra" in text.lower()] == []
