"""The platform's API, called by the client in Python: what each step found, as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import datetime, timedelta, timezone

from tessera import AsyncPlatformClient, SyncHTTPClient, SyncPlatformClient, TesseraError
from tessera.platform import (
    DeploymentStatus,
    FieldMask,
    Role,
    TaskStatus,
    Token,
    TokenAccess,
    TokenKind,
)

ACCESS = [TokenAccess.DEVELOPER_OPERATIONS]


def tokens(client: SyncPlatformClient) -> object:
    expires_at = datetime.now(timezone.utc).replace(microsecond=123000) + timedelta(minutes=30)
    made = [
        client.tokens.create_token(name=f"made {number}", access=ACCESS, expires_at=expires_at)
        for number in range(5)
    ]
    first = made[0].token
    assert first is not None and first.expires_at == expires_at
    assert first.kind is TokenKind.PERSONAL and first.access == ACCESS
    # Three pages, of two each.
    listed = [each.name for each in client.tokens.list_tokens(page_size=2)]
    first.description = "changed"
    changed = client.tokens.update_token(token=first, update_mask=FieldMask(["description"]))
    rotated = client.tokens.rotate_token(token_id=first.token_id, grace=timedelta(minutes=1.5))
    assert rotated.token is not None and rotated.token.previous_valid_until is not None
    client.tokens.delete_token(token_id=first.token_id)
    return {
        "listed": listed,
        "changed": [changed.description, changed.version],
        "rotated": rotated.value != made[0].value,
        "gone": refusal(lambda: client.tokens.get_token(token_id=first.token_id)),
    }


def refusal(act: object) -> object:
    assert callable(act)
    try:
        act()
    except TesseraError as err:
        fields = [violation.field for violation in err.violations]
        return [type(err).__name__, err.code, err.reason, dict(err.metadata), fields]
    return None


def refused(client: SyncPlatformClient, url: str) -> object:
    conflict = Token(token_id="tok_x", version=7)
    with SyncPlatformClient(url, token="tsrp_nothing", retries=0) as other:
        unknown = refusal(lambda: list(other.tokens.list_tokens()))
    return [
        unknown,
        refusal(lambda: client.tokens.create_token(name="", access=ACCESS)),
        refusal(lambda: client.tokens.update_token(token=conflict)),
        refusal(lambda: list(client.deployments.watch_deployment_logs(deployment="none"))),
    ]


def deployments(client: SyncPlatformClient) -> object:
    (one,) = client.deployments.list_deployments()
    revisions = [each.revision for each in client.deployments.list_revisions(deployment="echo")]
    stream = client.deployments.watch_deployments(follow_for=timedelta(0))
    watched = [each.name for message in stream for each in message.deployments]
    lines = list(client.deployments.watch_deployment_logs(deployment="echo", tail=5))
    return {
        "name": one.name,
        "ready": one.status is DeploymentStatus.READY,
        "revisions": revisions,
        "watched": watched,
        "lines": all(line.sequence > 0 and line.time is not None for line in lines),
    }


def tasks(client: SyncPlatformClient, url: str) -> object:
    with SyncHTTPClient(url, token=client.token, deployment="acme/echo") as echo:
        submitted = echo.work.submit(text="a")
        submitted.wait(timeout=60)
    (listed,) = client.organization_tasks.list_organization_tasks()
    task = client.tasks.get_task(deployment="acme/echo", task_id=submitted.id)
    events = list(client.tasks.watch_task(deployment="acme/echo", task_id=submitted.id))
    states = [each.state.status.name for each in events if each.state is not None]
    result = client.tasks.get_task_result(
        deployment="acme/echo", task_id=submitted.id, wait=timedelta(seconds=5)
    )
    return {
        "same": listed.task_id == task.task_id == submitted.id,
        "success": task.status is TaskStatus.SUCCESS,
        "took": task.finished_at is not None
        and task.created_at is not None
        and task.finished_at > task.created_at,
        "states": states,
        "result": result.value,
        "cancelled": refusal(
            lambda: client.tasks.cancel_task(deployment="acme/echo", task_id=submitted.id)
        ),
    }


def members(client: SyncPlatformClient) -> object:
    (organization,) = client.organizations.list_organizations().organizations
    (member,) = client.organizations.list_members()
    invited = refusal(
        lambda: client.organizations.invite_member(email="bob@example.com", role=Role.MEMBER)
    )
    return {
        "organization": organization.name,
        "admin": member.role is Role.ADMIN,
        "invited": invited,
        "invitations": client.organizations.list_invitations().invitations,
        "audit": next(iter(client.organizations.list_audit_events())).action,
    }


async def asynchronous() -> object:
    """Logged in by the environment."""
    async with AsyncPlatformClient() as client:
        names = [each.name async for each in client.tokens.list_tokens(page_size=2)]
        (one,) = [each async for each in client.deployments.list_deployments()]
        stream = client.deployments.watch_deployments(follow_for=timedelta(0))
        watched = [each.name async for message in stream for each in message.deployments]
        principal = await client.auth.get_current_principal()
        try:
            await client.tokens.get_token(token_id="tok_nothing")
        except TesseraError as err:
            return [len(names), one.name, watched, err.reason, principal is not None]
    return None


def main() -> None:
    url, token = os.environ["SERVICE_CLOUD_API_ENDPOINT"], os.environ["SERVICE_CLOUD_API_KEY"]
    with SyncPlatformClient(url, token=token) as client:
        found = {
            "tokens": tokens(client),
            "refused": refused(client, url),
            "deployments": deployments(client),
            "tasks": tasks(client, url),
            "members": members(client),
            "async": asyncio.run(asynchronous()),
        }
    json.dump(found, sys.stdout)


main()
