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

interface Asked {
  /** What its author asks; undefined: nothing. */
  readonly ready: (() => unknown) | undefined;
  /** What keeps its programs from taking requests, asked first; undefined: it has none. */
  readonly health: (() => Promise<string>) | undefined;
  readonly servicePath: string;
}

export class ServiceReadiness {
  readonly #asked: Asked;
  readonly #onSaid: (said: string) => void;
  #last = "";

  /**
   * `onSaid` is called with what the service says when that changes; with an empty text when it is
   * ready again.
   */
  constructor(asked: Asked, onSaid: (said: string) => void) {
    this.#asked = asked;
    this.#onSaid = onSaid;
  }

  /**
   * Resolves when the service says that it is ready; the node limits how long that may take.
   * Rejects when it throws, or answers with anything but a boolean or a text.
   */
  async reached(): Promise<void> {
    if (this.#asked.ready !== undefined) {
      this.#say("ready has not answered");
    }
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
    const { ready, health, servicePath } = this.#asked;
    const fault = (await health?.()) ?? "";
    if (fault !== "" || ready === undefined) {
      return fault;
    }
    const said = await this.#answer(ready);
    if (typeof said === "boolean" || typeof said === "string") {
      return said === true ? "" : `ready said ${said}`;
    }
    throw new Error(
      `${servicePath}: ready returned ${said === null ? "null" : typeof said}; it returns true, or false or a text that says why it is not ready`,
    );
  }

  async #answer(ready: () => unknown): Promise<unknown> {
    try {
      return await ready();
    } catch (err) {
      throw new Error(explain(err, this.#asked.servicePath), { cause: err });
    }
  }

  #say(said: string): void {
    if (said !== this.#last) {
      this.#last = said;
      this.#onSaid(said.slice(0, MAX_NOT_READY_CHARACTERS));
    }
  }
}
