"""The forms of stored JSON: the members of each object, and the checks before anything is believed.

Objects of a log are described in log/README.md, events, states and file lists in catalog/README.md. `taken`
returns a value with the defaults of its members filled in, or raises Refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

FORMAT = 1
FEATURES = {
    "absolute-paths", "collations", "column-defaults", "deletion-vectors", "foreign-files", "intervals", "times",
    "type-widening", "variants",
}  # fmt: skip
"""The features of readers. Those of writers are of no concern here."""
STATE_FEATURES = {"packs", "pages"}


class Refused(Exception):
    """The warehouse has an object that a reader must not read, or that is damaged."""


class Absent(Exception):
    """There is no such table, version, tag or branch."""


_PART = r"(?!\.\.?(?:/|\Z))[^/\\\x00-\x1f\x7f]+"
_PLACE = rf"{_PART}(?:/{_PART})*"
_AWAY = rf"/{_PLACE}|[a-z][a-z0-9]*://{_PLACE}"
TEXTS = {
    "Text": r"(?s).*",
    "Id": r"[A-Za-z0-9_-]{1,64}",
    "Txn": r"[A-Za-z0-9_-]{1,31}-[0-9a-f]{32}",
    "Hash": r"[0-9a-f]{64}",
    "Prev": r"(?:[0-9a-f]{64})?",
    "Digest": r"[0-9a-f]{16}",
    "Feature": r"(?s).{0,64}",
    "Word": r"[a-z][a-z -]{0,63}",
    "Name": r"(?s).{1,255}",
    "Sidecar_name": r"(?:\d{20}-)?[A-Za-z0-9_-]{1,64}-[0-9a-f]{16}\.bin",
    "Manifest": r"\d{20}-[A-Za-z0-9_.-]{1,128}",
    "Cut_object": r"[A-Za-z0-9_-]{1,64}\.json",
    "Folder": rf"(?=.{{0,1024}}\Z)(?:|{_PLACE})",
    "Location": rf"(?=.{{0,1024}}\Z)(?:|{_PLACE}|{_AWAY})",
    "Path": rf"(?=.{{1,2048}}\Z)(?:{_PLACE}|{_AWAY})",
    "Outcome": "committed|aborted",
    "Settled": "|committed|aborted",
    "Ref_kind": "tag|branch",
    "Space": "relation|namespace|function",
    "Entry_kind": "table|namespace|view|function",
    "Transform_name": "identity|bucket|truncate|year|month|day|hour",
    "Direction": "asc|desc",
    "Nulls": "first|last",
    "Paged": "entries|dropped",
    "Type_name": r"boolean|byte|short|integer|long|float|double|string|binary|date|timestamp|timestamp_ntz|variant"
    r"|decimal\(\d+,\d+\)|(?:char|varchar|time)\(\d+\)|interval (?:year|month|day|hour|minute|second)"
    r"(?: to (?:month|hour|minute|second))?|string collate \w+",
}
NUMBERS = {
    "Number": (0, 2**63 - 1),
    "Int64": (-(2**63), 2**63 - 1),
    "Field_id": (0, 2**31 - 1),
    "Time": (0, 253_402_300_799_000_000),
}

# `member:Form` is always there; with `?` it may be left out or null, with `*` left out if it is empty, 0 or false.
# `[Form]` is a list, `{Key:Form}` an object. `=` says the parts that a form shares with others.
RECORDS = """
Write        id:Id version:Number
Settles      outcome:Outcome time_us:Time*
Intent       txn:Txn log:Location index:Number count:Number proof:[Hash] folder:Folder warehouse:Location*
Refusal      kind:Word message:Text version:Number* by:Id?
Change       commit_id:Id base:Number writer:{Text:Any}* write:Write? events:Number* seen:Number* refused:Refusal?
Sidecar      name:Sidecar_name size_bytes:Number hash:Hash
Roles        seals:Flag* reopens:Flag* restores:Flag* purges:Flag*
commit       format:Number log_id:Id version:Number commit_id:Id attempt_id:Id base:Number prev:Prev time_us:Time
             writer:{Text:Any}* write:Write? features:[Feature]* writer_features:[Feature]* fence:Number*
             =Roles intent:Intent? settles:Settles?
             sidecars:[Sidecar]* events:[Any]* changes:[Change]* hash:Hash
tombstone    format:Number log_id:Id version:Number commit_id:Id attempt_id:Id prev:Prev time_us:Time =Roles
             outcome:Settled* applied:[Digest]* refused:[Digest]* commit_hash:Hash hash:Hash
Root         format:Number log_id:Id version:Number commit_hash:Hash time_us:Time base:Number* fence:Number*
             sealed:Flag* purged:Flag* settles:Settles? features:[Feature]* writer_features:[Feature]*
             state_features:[Feature]* uses:[Manifest]? state:Any?
snapshot     =Root hash:Hash*
base         format:Number log_id:Id number:Number root:kind/snapshot hash:Hash
decision     format:Number txn:Txn commit_id:Id outcome:Outcome time_us:Time* positions:{Text:Number}* hash:Hash

atomic       name:Type_name
struct       fields:[Field]
list         element_id:Field_id element:Type element_nullable:Flag+ element_widened:[Text]*
map          key_id:Field_id key:Type key_widened:[Text]* value_id:Field_id value:Type value_nullable:Flag+
             value_widened:[Text]*
Constant     type:Text value:Scalar
Default      current:Text? exists:Constant?
Generated    sql:Text columns:[Text]
Identity     start:Int64 step:Int64 always:Flag
Field        id:Field_id name:Text physical:Text type:Type nullable:Flag+ comment:Text? default:Default?
             generated:Generated? identity:Identity? metadata:{Text:Any}* widened:[Text]*
Schema       fields:[Field] last_id:Field_id
Transform    name:Transform_name argument:Field_id?
Spec_field   id:Field_id source_id:Field_id name:Text transform:Transform result:kind/atomic
Spec         id:Field_id* fields:[Spec_field]*
Order_field  source_id:Field_id transform:Transform direction:Direction nulls:Nulls
Order        fields:[Order_field]*
Key          name:Text columns:[Field_id] rely:Flag*
check        =Key sql:Text predicate:Any?
primary-key  =Key
unique       =Key
foreign-key  =Key table:[Text] referenced:[Text]
Boundaries   id:Field_id type:Text prefix:Text* values:[Scalar]*
Ranks        generation:Number first:Number columns:[Boundaries]
Metadata     schema:Schema specs:[Spec] sort_order:Order properties:{Text:Text} provider:Text? comment:Text?
             own_location:Flag* generation:Number* constraints:[Constraint]* clustering:[Field_id]* ranks:Ranks?

Statistics   nulls:Number? lo:Scalar? hi:Scalar? nans:Number?
Deletes      rows:Number size:Number crc:Number inline:Text? path:Path? offset:Number? object:Number?
File         path:Path size:Number rows:Number spec:Field_id* partition:{Key_id:Scalar}* stats:{Key_id:Statistics}*
             write:Text* crc:Number? footer:Number? names:{Key_id:Text}? constants:{Key_id:Constant}* deletes:Deletes?
             first_row:Number? version:Number? curve:Number? curve_low:Number? curve_high:Number?
Removed      path:Path rows:Number size:Number
FilesChange  operation:Word added:[File]* removed:[Removed]* added_sidecar:Number? removed_sidecar:Number?
             added_files:Number* added_rows:Number* added_bytes:Number* removed_files:Number* removed_rows:Number*
             removed_bytes:Number* filter:Text? changed_files:Number* deleted_rows:Number* of_changes:Number*
             inserted_rows:Number? updated_rows:Number?

view         text:Text columns:[Any] query_columns:[Text]* catalog:Text? namespace:[Text]* configs:{Text:Text}*
             schema_mode:Text? properties:{Text:Text}* dependencies:[Any]?
function     language:Text body:Text parameters:Text? returns:Text? is_table:Flag* is_query:Flag* comment:Text?
             catalog:Text? namespace:[Text]* configs:{Text:Text}* resources:[Any]* properties:{Text:Text}*
Link         namespace:Folder name:Name
namespace-created   properties:{Text:Text} parent:Folder? name:Name?
namespace-altered   set:{Text:Text} removed:[Text]*
entry-linked        space:Space name:Name kind:Entry_kind id:Id location:Location
entry-defined       space:Space name:Name id:Id definition:Definition
entry-unlinked      space:Space name:Name id:Id dropped:Flag*
entry-renamed       space:Space name:Name id:Id new_name:Name
entry-forgotten     id:Id
entry-purged        id:Id
namespace-dropped   cascade:Flag
namespace-restored  parent:Folder name:Name
namespace-purged
cut-saved           name:Name object:Cut_object hash:Hash logs:Number
cut-dropped         name:Name
history-expired     version:Number
files-vacuumed      files:Number size_bytes:Number begun:[Id]*

Source              format:Word url:Text identity:Text snapshot:Text time_us:Int64? operation:Text? ref:Id?
                    metadata:Text? copies:Flag* gone:{Text:Any}*
Origin              location:Folder id:Id
Ancestor            id:Id until:Number
Estimates           version:Number rows:Number size_bytes:Number columns:{Key_id:Any} added_since:Number*
Begun               schema:Schema spec:Spec sort_order:Order properties:{Text:Text} provider:Text? comment:Text?
table-created       =Begun namespace:Folder? name:Name? own_location:Flag*
table-replaced      =Begun
schema-changed      schema:Schema
partitioning-changed spec:Spec
sort-order-changed  sort_order:Order
clustering-changed  columns:[Field_id] ranks:Ranks?
table-altered       set:{Text:Text} removed:[Text]*
constraint-added    constraint:Constraint
constraint-dropped  name:Text
files-changed       =FilesChange
rows-appended       rows:Number
branch-files-changed =FilesChange branch:Name
ref-set             =FilesChange name:Name kind:Ref_kind id:Id of:Name version:Number? ahead:Flag* apart:Flag*
                    metadata:Metadata?
ref-dropped         name:Name kind:Ref_kind
fast-forwarded      branch:Name to:Name
identity-taken      column:Field_id first:Int64 last:Int64
rolled-back         version:Number metadata:Metadata?
statistics-computed estimates:Estimates
stream-committed    stream:Text batch:Number
source-imported     source:Source
files-adopted       source:Source files:[Removed]* files_sidecar:Number?
adopted-files-deleted files:[Removed]* files_sidecar:Number?
table-cloned        of:Id version:Number metadata:Metadata origins:[Origin] next_row:Number* identities:{Key_id:Int64}*
                    ancestors:[Ancestor]*
clone-promised      =FilesChange clone:Id location:Folder version:Number of:Id? metadata:Metadata?
clone-released      clones:[Id]
origins-released    logs:[Id]
rows-erased         erasure:Id filter:Text reference:Text?
erasure-ended       erasure:Id statement:Text signature:Text? signed_by:Text?
table-dropped
table-moved         =Link
table-restored      =Link
table-purged

Entry               kind:Entry_kind id:Id location:Location? definition:Definition?
Pack                kinds:[Text] entries:[Number] places:[[[Number]]] sha256:[Text]
Page_list           of:Paged space:Space? pages:[Any] gone:[Name]*
Namespace_state     properties:{Text:Text} entries:{Space:{Name:Entry}} dropped:{Id:Any}*
                    forgotten:[Id]* cuts:{Name:Any}* begun:{Id:Time}* expired:Number*
                    link:Link? writers:{Text:Any}* paged:[Page_list]*
                    version:Number*
File_list           name:Manifest entries:Number? seq:Number sha256:Hash? leaves:[Number]?
Files               files:Number rows:Number bytes:Number manifests:[File_list]* removed:[File_list]*
Line                changes:Number* contains:{Id:Number}*
Ref                 kind:Ref_kind id:Id version:Number files:Files metadata:Metadata? line:Line
Table_state         metadata:Metadata files:Files link:Link? expired:Number* estimates:Estimates? streams:{Text:Number}*
                    next_row:Number* identities:{Key_id:Int64}* refs:{Name:Ref}* main:Line? source:Source? adopted:Any?
                    clones:{Id:Any}* origins:[Origin]* ancestors:[Ancestor]* erased:Number* erasing:Id?
                    hints:{Text:Any}* writers:{Text:Any}* packs:{Manifest:Pack}*
"""
_NAMES = re.findall(r"(?m)^[a-z-]+", RECORDS)
UNIONS = {  # the member that says which form an object has, and the forms
    "Entry_object": ("kind", ("commit", "tombstone")),
    "Type": ("kind", ("atomic", "struct", "list", "map")),
    "Constraint": ("kind", ("check", "primary-key", "unique", "foreign-key")),
    "Definition": ("kind", ("view", "function")),
    "Namespace_event": ("event", _NAMES[_NAMES.index("namespace-created") : _NAMES.index("table-created")]),
    "Table_event": ("event", _NAMES[_NAMES.index("history-expired") :]),
}


def _records() -> dict[str, dict[str, tuple[str, str]]]:
    """Return the members of each record, with their forms and the marks after these."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    name = ""
    for line in filter(None, RECORDS.splitlines()):
        words = line.split()
        if line[0] != " ":
            name = words.pop(0)
            found[name] = {}
        for word in words:
            if word[0] == "=":
                found[name] |= found[word[1:]]
            else:
                member, form, mark = re.fullmatch(r"(\w+):(.*?)([?*+]?)", word).groups()  # type: ignore[union-attr]
                found[name][member] = (form, mark)
    return found


_MEMBERS = _records()


def taken(value: Any, form: str, at: str) -> Any:
    """Return `value` if it has the form, with defaults filled in. `at` names it in messages."""
    if form == "Any":
        return value
    if form[0] == "[":
        if type(value) is not list:
            raise Refused(f"{at} is not a list")
        return [taken(item, form[1:-1], f"{at}[{place}]") for place, item in enumerate(value)]
    if form[0] == "{":
        key, _, item_form = form[1:-1].partition(":")
        if type(value) is not dict:
            raise Refused(f"{at} is not an object")
        return {
            taken(name, key, at): taken(item, item_form, f"{at}.{name:.80}") for name, item in value.items()
        }
    if form in UNIONS:
        tag, forms = UNIONS[form]
        kind = value.get(tag) if type(value) is dict else None
        if kind not in forms:
            raise Refused(
                f"{at} has the {tag} {kind!r:.80}, which this reader does not know: a newer writer wrote it"
            )
        return _tagged(value, tag, kind, at)
    if "/" in form:
        tag, _, kind = form.partition("/")
        if type(value) is not dict or value.get(tag) != kind:
            raise Refused(f"{at} is not a {kind}")
        return _tagged(value, tag, kind, at)
    if form in _MEMBERS:
        return _record(value, form, at)
    if form == "Key_id":
        return taken(int(value) if re.fullmatch(r"\d{1,10}", value) else None, "Field_id", at)
    if form in NUMBERS:
        low, high = NUMBERS[form]
        right = type(value) is int and low <= value <= high
    elif form == "Flag":
        right = type(value) is bool
    elif form == "Scalar":
        right = not isinstance(value, dict | list)
    else:
        right = type(value) is str and re.fullmatch(TEXTS[form], value) is not None
    if not right:
        newer = ": a newer writer may have written it" if form in ("Type_name", "Transform_name") else ""
        raise Refused(f"{at} is {value!r:.80}, which is not of the form {form}{newer}")
    return value


def skips(event: Any, form: str) -> bool:
    """Return whether a reader skips an event: it does not know it, and a newer writer says that it need not."""
    return (
        type(event) is dict and event.get("event") not in UNIONS[form][1] and event.get("skippable") is True
    )


def _tagged(value: dict[str, Any], tag: str, kind: str, at: str) -> dict[str, Any]:
    members = {name: item for name, item in value.items() if name != tag}
    return {tag: kind, **_record(members, kind, at)}


def _record(value: Any, form: str, at: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise Refused(f"{at} is not an object")
    members = _MEMBERS[form]
    for name in value:
        if name not in members:
            raise Refused(f"{at} has the unknown member {name:.80}: a newer writer wrote it")
    record = {}
    for name, (member, mark) in members.items():
        if name in value and not (mark == "?" and value[name] is None):
            record[name] = taken(value[name], member, f"{at}.{name}")
        elif not mark:
            raise Refused(f"{at} lacks the member {name}")
        else:
            record[name] = {"?": None, "+": True}.get(mark, _empty(member))
    return record


def _empty(form: str) -> Any:
    if form[0] in "[{":
        return [] if form[0] == "[" else {}
    return 0 if form in NUMBERS else False if form == "Flag" else ""


def stored_object(data: bytes, form: str, at: str) -> dict[str, Any]:
    """Return a `.json` object of a log that has the hash of its content, and the form."""
    tail = re.fullmatch(rb',"hash":"([0-9a-f]{64})"\}', data[-75:])
    if tail is None or hashlib.sha256(data[:-75] + b"}").hexdigest() != tail[1].decode():
        raise Refused(f"{at} does not have the hash of its content: it was truncated or altered")
    value = parsed(data, at)
    check_format(value, at)
    stored: dict[str, Any] = taken(value, form, at)
    return stored


def check_format(value: Any, at: str) -> None:
    """Refuse what only a newer reader may read, and say so before any other fault is found."""
    if type(value) is not dict or type(value.get("format")) is not int:
        raise Refused(f"{at} has no format")
    if value["format"] > FORMAT:
        raise Refused(f"{at} has format {value['format']}, and this reader knows {FORMAT}")
    for member, known in (("features", FEATURES), ("state_features", STATE_FEATURES)):
        features = value.get(member, [])
        unknown = [name for name in features if name not in known] if type(features) is list else []
        if unknown:
            raise Refused(f"{at} uses the feature {unknown[0]}, which this reader does not know")


def parsed(data: bytes | str, at: str) -> Any:
    """Return the value of a JSON text without constants such as NaN, and without a member twice."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            raise ValueError("a member is there twice")
        return value

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(data, object_pairs_hook=members, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{at} is not JSON: {error}") from None
