/**
 * Readiness: a service that has loaded is asked whether it may take calls, until it may, and again
 * while it serves.
 */
import { setTimeout as wait } from "node:timers/promises";
import { MAX_NOT_READY_CHARACTERS } from "../protocol/messages.ts";
import { explain } from "./load.ts";

/** Pause between two questions whether a service is ready, while it is not. */
const ASK_INTERVAL_MS = 1_000;
/** The same while it is. */
const READY_ASK_INTERVAL_MS = 5_000;

export class ServiceReadiness {
  readonly #ready: () => unknown;
  readonly #servicePath: string;
  readonly #onSaid: (said: string) => void;
  #last = "";

  /**
   * `onSaid` is called with what the service says when that changes; with an empty text when it is
   * ready again.
   */
  constructor(ready: () => unknown, servicePath: string, onSaid: (said: string) => void) {
    this.#ready = ready;
    this.#servicePath = servicePath;
    this.#onSaid = onSaid;
  }

  /**
   * Resolves when the service says that it is ready; the node limits how long that may take.
   * Rejects when it throws, or answers with anything but a boolean or a text.
   */
  async reached(): Promise<void> {
    this.#say("ready has not answered");
    for (let said = await this.#ask(); said !== ""; said = await this.#ask()) {
      this.#say(said);
      await wait(ASK_INTERVAL_MS);
    }
    this.#last = "";
  }

  /** Asks on, for as long as the process lives. An error means that it is not ready. */
  async follow(): Promise<never> {
    for (;;) {
      await wait(this.#last === "" ? READY_ASK_INTERVAL_MS : ASK_INTERVAL_MS);
      this.#say(await this.#ask().catch((err: Error) => err.message));
    }
  }

  /** What it says; empty: that it is ready. */
  async #ask(): Promise<string> {
    const said = await this.#answer();
    if (typeof said === "boolean" || typeof said === "string") {
      return said === true ? "" : `ready said ${said}`;
    }
    throw new Error(
      `${this.#servicePath}: ready returned ${said === null ? "null" : typeof said}; it returns true, or false or a text that says why it is not ready`,
    );
  }

  async #answer(): Promise<unknown> {
    try {
      return await this.#ready();
    } catch (err) {
      throw new Error(explain(err, this.#servicePath), { cause: err });
    }
  }

  #say(said: string): void {
    if (said !== this.#last) {
      this.#last = said;
      this.#onSaid(said.slice(0, MAX_NOT_READY_CHARACTERS));
    }
  }
}
