/** Follows a stream while a component is shown; begins again with backoff when it breaks. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Backoff } from "../../../time/backoff.ts";
import { isSignedOut, isTransient, messageOf } from "./errors.ts";
import { getJson } from "./get-json.ts";
import { me } from "./session.ts";
import type { StreamOptions } from "./stream.ts";

/** How long a page waits before it follows a stream again that broke; twice as long each time. */
const MIN_BACKOFF_MS = 500;
/** The longest such wait. */
const MAX_BACKOFF_MS = 10_000;

/**
 * How long a stream may be without an answer and count as followed: servers answer with the first
 * message, which may be long in coming, and at once when they refuse.
 */
const QUIET_AFTER_MS = 2_000;

/**
 * How long a stream may be silent. A connection can be cut without a word, by a machine that is
 * gone or by a network in between, and looks then as one does on which nothing happens: the page
 * asks whether the server is there, and follows it anew over a connection that works.
 */
const MAX_SILENCE_MS = 45_000;
/** How long the server may take to say that it is there. */
const PROBE_TIMEOUT_MS = 5_000;

/** How the stream is: following, waiting to begin again, at its end, or broken for good. */
export type StreamState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "reconnecting" }
  | { readonly kind: "ended" }
  | { readonly kind: "failed"; readonly message: string };

/**
 * Follows what `open` opens, until `key` changes or the component goes; without a key, nothing. `open` is called again
 * after a break, and resumes where `onMessage` was last. A stream that ends, as all do after ten
 * minutes, is followed again unless `isOver` says that no more can come.
 */
export function useStream<Message>(
  key: string | undefined,
  open: (options: StreamOptions) => AsyncIterable<Message>,
  onMessage: (message: Message) => void,
  isOver: () => boolean = () => false,
): StreamState {
  const queryClient = useQueryClient();
  const [state, setState] = useState<StreamState>({ kind: "connecting" });
  const latest = useRef({ open, onMessage, isOver });
  latest.current = { open, onMessage, isOver };
  // biome-ignore lint/correctness/useExhaustiveDependencies: another key is another stream
  useEffect(() => {
    if (key === undefined) {
      return undefined;
    }
    const leaving = new AbortController();
    let attempt = new AbortController();
    // A connection without a network is silent, as one is on which nothing happens.
    const onOffline = (): void => attempt.abort();
    addEventListener("offline", onOffline, { signal: leaving.signal });
    const onOpen = (): void => setState({ kind: "live" });
    setState({ kind: "connecting" });
    void (async () => {
      const backoff = new Backoff(MIN_BACKOFF_MS, MAX_BACKOFF_MS);
      while (!leaving.signal.aborted) {
        attempt = new AbortController();
        const signal = AbortSignal.any([leaving.signal, attempt.signal]);
        const quiet = setTimeout(onOpen, QUIET_AFTER_MS);
        const silence = new Silence(attempt);
        try {
          for await (const message of latest.current.open({ signal, onOpen })) {
            silence.begin();
            backoff.reset();
            latest.current.onMessage(message);
          }
          if (!leaving.signal.aborted && latest.current.isOver()) {
            setState({ kind: "ended" });
            return;
          }
        } catch (err) {
          if (leaving.signal.aborted) {
            return;
          }
          if (!attempt.signal.aborted && (isSignedOut(err) || !isTransient(err))) {
            setState({ kind: "failed", message: messageOf(err) });
            if (isSignedOut(err)) {
              // The page that asks who is signed in leads to the sign-in.
              void queryClient.invalidateQueries(me);
            }
            return;
          }
          if (silence.isAnswered) {
            continue;
          }
          setState({ kind: "reconnecting" });
        } finally {
          clearTimeout(quiet);
          silence.end();
        }
        await backoff.pause(leaving.signal);
      }
    })();
    return () => leaving.abort();
  }, [key]);
  return state;
}

/** Ends an attempt that has been silent for too long, and knows whether the server is there. */
class Silence {
  /** The attempt was ended though the server answers: its connection was old, and no more. */
  isAnswered = false;
  readonly #attempt: AbortController;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(attempt: AbortController) {
    this.#attempt = attempt;
    this.begin();
  }

  /** The silence begins, or begins anew. */
  begin(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#probe(), MAX_SILENCE_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  async #probe(): Promise<void> {
    const timeout = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const signal = AbortSignal.any([timeout, this.#attempt.signal]);
    this.isAnswered = await getJson("/livez", signal).then(
      () => true,
      () => false,
    );
    this.#attempt.abort();
  }
}
