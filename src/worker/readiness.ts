/** Readiness: a service that has loaded is asked whether it may take calls, until it may. */
import { setTimeout as wait } from "node:timers/promises";
import { MAX_NOT_READY_CHARACTERS } from "../protocol/messages.ts";
import type { ReadyService } from "../sdk/describe.ts";
import { explain } from "./load.ts";

/** Pause between two questions whether a service is ready. */
const ASK_INTERVAL_MS = 1_000;

/**
 * Resolves when the service says that it is ready; the node limits how long that may take.
 * `onSaid` is called with what it says before, when that changes. Rejects when it throws, or
 * answers with anything but a boolean or a text.
 */
export async function untilReady(
  { ready }: Pick<ReadyService, "ready">,
  servicePath: string,
  onSaid: (message: string) => void,
): Promise<void> {
  if (ready === undefined) {
    return;
  }
  let last = "";
  const say = (said: string): void => {
    if (said !== last) {
      last = said;
      onSaid(said.slice(0, MAX_NOT_READY_CHARACTERS));
    }
  };
  say("ready has not answered");
  for (;;) {
    const said = await answerOf(ready, servicePath);
    if (said === true) {
      return;
    }
    if (typeof said !== "boolean" && typeof said !== "string") {
      throw new Error(
        `${servicePath}: ready returned ${said === null ? "null" : typeof said}; it returns true, or false or a text that says why it is not ready`,
      );
    }
    say(`ready said ${said}`);
    await wait(ASK_INTERVAL_MS);
  }
}

async function answerOf(ready: () => unknown, servicePath: string): Promise<unknown> {
  try {
    return await ready();
  } catch (err) {
    throw new Error(explain(err, servicePath), { cause: err });
  }
}
