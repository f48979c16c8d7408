/**
 * Device login for a machine without a browser (RFC 8628): it shows a code, the
 * user enters it in a browser anywhere, and the command polls for the approval.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFacts, type LoginResponse } from "../../client/index.ts";
import type { Clock } from "../command.ts";
import { CliError } from "../failure.ts";
import { plain } from "../plain.ts";
import type { LoginOptions } from "./browser.ts";

/** Interval of a device login's polls where the server names none, as RFC 8628 says. */
const DEFAULT_DEVICE_POLL_INTERVAL_MS = 5_000;
/**
 * How much the interval of a device login's polls grows when the server says `slow_down` (RFC
 * 8628, section 3.5).
 */
const DEVICE_POLL_SLOW_DOWN_MS = 5_000;
/**
 * How long `login` polls for a device code: the server ends the code after 10 minutes; this is
 * for one that never says so.
 */
const DEVICE_LOGIN_TIMEOUT_MS = 15 * 60_000;

/** Shows the code and waits for the answer. */
export async function logInByDevice(options: LoginOptions, clock: Clock): Promise<LoginResponse> {
  const { client, terminal, hostName } = options;
  using interruption = terminal.streams.interruption();
  const { signal } = interruption;
  const started = await client.login.startDeviceLogin({ hostName }, { signal });
  terminal.say(
    `Open this page in any browser, and allow it there if it shows the code ${plain(started.userCode)}:\n\n  ${plain(started.verificationUrlComplete)}\n\nWaiting for your answer there (Ctrl-C gives up) …`,
  );
  const { interval } = started;
  let waitMs =
    interval === undefined
      ? DEFAULT_DEVICE_POLL_INTERVAL_MS
      : Number(interval.seconds) * 1000 + interval.nanos / 1_000_000;
  const endMs = clock.now() + DEVICE_LOGIN_TIMEOUT_MS;
  while (clock.now() < endMs) {
    await clock.wait(waitMs, signal);
    try {
      const { deviceCode } = started;
      return await client.login.redeemDeviceLogin({ deviceCode }, { signal });
    } catch (err) {
      waitMs = nextWait(err, waitMs);
    }
  }
  throw expired();
}

/** Returns the delay before the next poll; throws when polling is pointless. */
function nextWait(err: unknown, waitMs: number): number {
  switch (errorFacts(err).reason) {
    case "LOGIN_PENDING":
      return waitMs;
    case "LOGIN_SLOW_DOWN":
      return waitMs + DEVICE_POLL_SLOW_DOWN_MS;
    case "LOGIN_DENIED":
      throw new CliError("the login was refused in the browser");
    case "LOGIN_INVALID":
      throw expired();
    default:
      // The server restarts, or the network is briefly unreachable.
      if (
        err instanceof ConnectError &&
        [Code.Unavailable, Code.Aborted, Code.DeadlineExceeded].includes(err.code)
      ) {
        return Math.min(waitMs * 2, 60_000);
      }
      throw err;
  }
}

function expired(): CliError {
  return new CliError("the code has expired: nobody answered in time", {
    hint: "start again: tessera cloud login --device",
  });
}
