"""The platform's API: tokens, deployments, tasks, members and organizations, with generated types.

One class for threads, one for event loops; both have one attribute for each service. The classes
of messages and enums, such as `TokenAccess`, are in this module too.
"""

from __future__ import annotations

import ssl

from .async_driver import AsyncDriver
from .device_login import DeviceCode as DeviceCode
from .device_login import ShowCode, device_login, show_code
from .environment import resolve_platform
from .gen import *  # noqa: F403
from .gen import alert as _alert
from .gen import auth as _auth
from .gen import deployment as _deployment
from .gen import endpoint as _endpoint
from .gen import metrics as _metrics
from .gen import organization as _organization
from .gen import organization_task as _organization_task
from .gen import schedule as _schedule
from .gen import task as _task
from .gen import token as _token
from .gen import usage as _usage
from .gen import webhook as _webhook
from .repeat import Policy
from .sync_driver import SyncDriver


class SyncPlatformClient:
    """Calls the platform, with threads.

    `url`: the platform's; without it, `SERVICE_CLOUD_API_ENDPOINT`.
    `token`: without it, `SERVICE_CLOUD_API_KEY`, which is sent only to that platform.
    `timeout`: how long an answer may take, in seconds.
    `retries`: maximum repetitions of a call, where that is safe (see `repeat`).
    `verify`: as in httpx, for servers with a certificate of a private authority.

    Calls raise a `TesseraError` with `code`, `reason`, `message` and `metadata`. Lists are
    iterators over all pages.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        url, token = resolve_platform(url, token)
        driver = SyncDriver(Policy(url, timeout, retries), token, headers={}, verify=verify)
        self._driver = driver
        self.alerts = _alert.SyncAlertService(driver)
        self.usage = _usage.SyncUsageService(driver)
        self.auth = _auth.SyncAuthService(driver)
        self.deployments = _deployment.SyncDeploymentService(driver)
        self.endpoints = _endpoint.SyncEndpointService(driver)
        self.metrics = _metrics.SyncMetricsService(driver)
        self.schedules = _schedule.SyncScheduleService(driver)
        self.organizations = _organization.SyncOrganizationService(driver)
        self.organization_tasks = _organization_task.SyncOrganizationTaskService(driver)
        """The tasks of an organization, over all of its deployments."""
        self.tasks = _task.SyncTaskService(driver)
        self.tokens = _token.SyncTokenService(driver)
        self.webhooks = _webhook.SyncWebhookService(driver)

    @classmethod
    def log_in(
        cls,
        url: str,
        *,
        show: ShowCode = show_code,
        timeout: float = 60,
        retries: int = 5,
        verify: ssl.SSLContext | bool = True,
    ) -> SyncPlatformClient:
        """Returns a client with a token of the person who runs the program, valid for 90 days.

        They confirm a code in a browser, on any machine. `show` is given the code; without it,
        standard error says what to do. `token` of the client is the token, for the next time.
        Raises a `TesseraError` when the person refuses (`LOGIN_DENIED`) or lets the code expire
        (`LOGIN_INVALID`).
        """
        client = cls(url, token="", timeout=timeout, retries=retries, verify=verify)
        driver = client._driver
        try:
            client.token = driver.run(device_login(show, driver.policy))
        except BaseException:
            client.close()
            raise
        return client

    @property
    def token(self) -> str | None:
        """The token that is sent; may be set to another at any time."""
        return self._driver.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._driver.token = token

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> SyncPlatformClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncPlatformClient:
    """Calls the platform, on an event loop of asyncio or trio.

    `url`: the platform's; without it, `SERVICE_CLOUD_API_ENDPOINT`.
    `token`: without it, `SERVICE_CLOUD_API_KEY`, which is sent only to that platform.
    `timeout`: how long an answer may take, in seconds.
    `retries`: maximum repetitions of a call, where that is safe (see `repeat`).
    `verify`: as in httpx, for servers with a certificate of a private authority.

    Calls raise a `TesseraError` with `code`, `reason`, `message` and `metadata`. Lists are
    asynchronous iterators over all pages.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 60,
        retries: int = 5,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        url, token = resolve_platform(url, token)
        driver = AsyncDriver(Policy(url, timeout, retries), token, headers={}, verify=verify)
        self._driver = driver
        self.alerts = _alert.AsyncAlertService(driver)
        self.usage = _usage.AsyncUsageService(driver)
        self.auth = _auth.AsyncAuthService(driver)
        self.deployments = _deployment.AsyncDeploymentService(driver)
        self.endpoints = _endpoint.AsyncEndpointService(driver)
        self.metrics = _metrics.AsyncMetricsService(driver)
        self.schedules = _schedule.AsyncScheduleService(driver)
        self.organizations = _organization.AsyncOrganizationService(driver)
        self.organization_tasks = _organization_task.AsyncOrganizationTaskService(driver)
        """The tasks of an organization, over all of its deployments."""
        self.tasks = _task.AsyncTaskService(driver)
        self.tokens = _token.AsyncTokenService(driver)
        self.webhooks = _webhook.AsyncWebhookService(driver)

    @classmethod
    async def log_in(
        cls,
        url: str,
        *,
        show: ShowCode = show_code,
        timeout: float = 60,
        retries: int = 5,
        verify: ssl.SSLContext | bool = True,
    ) -> AsyncPlatformClient:
        """Returns a client with a token of the person who runs the program, valid for 90 days.

        They confirm a code in a browser, on any machine. `show` is given the code; without it,
        standard error says what to do. `token` of the client is the token, for the next time.
        Raises a `TesseraError` when the person refuses (`LOGIN_DENIED`) or lets the code expire
        (`LOGIN_INVALID`).
        """
        client = cls(url, token="", timeout=timeout, retries=retries, verify=verify)
        driver = client._driver
        try:
            client.token = await driver.run(device_login(show, driver.policy))
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def token(self) -> str | None:
        """The token that is sent; may be set to another at any time."""
        return self._driver.token

    @token.setter
    def token(self, token: str | None) -> None:
        self._driver.token = token

    async def close(self) -> None:
        await self._driver.close()

    async def __aenter__(self) -> AsyncPlatformClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
