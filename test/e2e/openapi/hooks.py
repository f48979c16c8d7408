"""What Schemathesis cannot know: who calls, what exists, formats of their own; and two stricter checks."""

import json
import os

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

# Formats that are named after what they are (src/api/openapi/checked.ts).
FORMATS = {
    "page-token": [""],
    "ip-network": ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"],
    "host-rule": ["api.example.com:443", "*.example.com", "10.0.0.0/8"],
    "selector": ['{__name__=~"tessera_.*"}', "tessera_tasks", 'up{job="a"}'],
    "visible-text": ["laptop", "Büro 3"],
}
for name, examples in FORMATS.items():
    schemathesis.openapi.format(name, st.sampled_from(examples))

# What exists, by the place and the name of a parameter: without it nearly every answer is 404.
KNOWN = json.loads(os.environ.get("TESSERA_KNOWN", "{}"))

# Operations that would end what the other calls need, and the ids that they are kept from.
ENDS = ("DeleteDeployment", "StopDeployment", "SignOut", "RemoveMember", "UpdateMember")
ENDS += ("DeleteToken", "RotateToken", "UpdateToken", "LeaveOrganization", "PauseEndpoint")
ENDS += ("DeleteTask", "DeleteTasks")
KEPT = set(KNOWN.get("kept", []))

# Reasons that say that a request is not what the document asks for; others are about the state of things.
INVALID = {"REQUEST_INVALID", "ARGUMENTS_INVALID", "BODY_MALFORMED", "CONTENT_TYPE_UNSUPPORTED"}

# Fields with rules that no schema says: times are compared with now, a mask or a key with another part of the
# request, settings with each other, and people of several organizations have to name one.
RELATIVE = {"expires_at", "not_before", "run_at", "start_by", "start_within", "delay"}
# An id or a key may be in two places, if it is the same in both.
RELATIVE |= {"task_id", "update_mask", "idempotency_key", "settings", "deployment.settings", "organization"}
# How many files there are is known to the task.
RELATIVE |= {"file"}
# Parts of a GPU are in hundredths, which a multiple of a fraction does not say exactly.
RELATIVE |= {"settings.gpus", "deployment.settings.gpus"}
# Addresses have to be public, endpoints those of the service, and expressions and zones those that there are.
RELATIVE |= {"webhook.url", "webhook.endpoint"}
RELATIVE |= {f"schedule.{field}" for field in ("endpoint", "arguments", "cron", "time_zone")}
# What a receiver is decides what its address is, and mail is sent where there is a server; a percentage is at most
# 100, and a schema has no bounds of durations.
RELATIVE |= {"receiver.kind", "receiver.address", "rule.threshold", "rule.hold"}
# Each kind of source has a form of its own, and the answer is its server's.
RELATIVE |= {"source"}
# What a filter chooses depends on its parts together, and on what is done.
RELATIVE |= {"filter.all", "filter.statuses", "filter.error_contains"}
# What a token has together with what an update of it sends.
OF_TOKEN = {"access", "all_deployments", "deployments"}


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Calls as who may, people where tokens may not, and what exists half of the time."""
    operation = ctx.operation.definition.raw
    security = operation.get("security", [{"token": []}])
    ends = operation.get("operationId", "").endswith(ENDS)
    case.cookies = {}
    case.headers.pop("authorization", None)
    if {"sessionCookie": []} in security and {"bearerToken": []} not in security:
        if not ends:
            case.cookies = {"tessera_session": os.environ["TESSERA_SESSION"]}
    elif security and "TESSERA_TOKEN" in os.environ:
        case.headers["authorization"] = f"Bearer {os.environ['TESSERA_TOKEN']}"
    places = {"path": case.path_parameters, "query": case.query, "body": case.body}
    for place, values in places.items():
        if isinstance(values, dict) and not ends:
            for name in KNOWN.get(place, {}).keys() & values.keys():
                # As random as the value that it replaces.
                if len(str(values[name])) % 2:
                    values[name] = KNOWN[place][name]
    if ends and isinstance(case.path_parameters, dict):
        for name in case.path_parameters:
            if case.path_parameters[name] in KEPT:
                case.path_parameters[name] = "another"
    keep_short(case)


def keep_short(case):
    """Waits end soon, no task starts in a month, and a log is not followed, which has no end."""
    query = case.query if isinstance(case.query, dict) else {}
    query.pop("follow", None)
    if "follow_for" in query or case.operation.path.endswith(("/tasks:watch", "/deployments:watch")):
        case.query = query = {**query, "follow_for": "0.01s"}
    # A schema has no bounds of durations.
    if query.get("window"):
        query["window"] = "3600s"
    for name in ("wait", "delay"):
        if isinstance(query.get(name), (int, float)):
            query[name] = min(query[name], 0.01)
        elif query.get(name) not in (None, ""):
            query[name] = query[name] if len(str(query[name])) > 6 else "0.01"
    if isinstance(case.body, dict) and "wait" in case.body:
        case.body["wait"] = "0.01s"
    if str(case.headers.get("Prefer", "")).startswith("wait="):
        case.headers["Prefer"] = "wait=1"


@schemathesis.deserializer("application/x-ndjson")
def read_lines(ctx, response):
    """The schema is that of each line."""
    return json.loads((response.text.splitlines() or ["{}"])[0])


@schemathesis.check
def status_is_listed(ctx, response, case):
    """Every status is listed by its number: `default` is for what functions throw, and for proxies."""
    if case.method.lower() != case.operation.method.lower():
        return  # An unlisted method.
    listed = {str(status) for status in case.operation.definition.raw["responses"]}
    if str(response.status_code) not in listed:
        raise AssertionError(f"{response.status_code} is not listed: {response.text[:500]}")


@schemathesis.check
def valid_request_is_taken(ctx, response, case):
    """A request as the document describes it is refused for the state of things only."""
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    if response.status_code not in (400, 405, 413, 415, 422):
        return
    error = json.loads(response.text)
    details = {each["type"]: each.get("debug", {}) for each in error.get("details", [])}
    reason = details.get("google.rpc.ErrorInfo", {}).get("reason")
    violations = details.get("google.rpc.BadRequest", {}).get("fieldViolations", [])
    fields = {each.get("field", "") for each in violations}
    if case.operation.definition.raw["operationId"].endswith("UpdateToken"):
        fields -= OF_TOKEN
    # What a mask names without the body giving it is set to its empty value.
    fields -= set(str((case.query or {}).get("update_mask", "")).split(","))
    if reason == "ARGUMENTS_INVALID" and case.path.startswith("/api/v1/"):
        return  # The document of the deployment says what its arguments are.
    if reason in INVALID and not (violations and fields <= RELATIVE):
        raise AssertionError(f"a valid request was refused: {error['message']}")
