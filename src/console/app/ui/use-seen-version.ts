/** Changes of a thing that two people may have before them: nobody replaces what they have not seen. */
import { useRef } from "react";
import { CallError, isConflict } from "../api/errors.ts";

interface Versioned {
  readonly version?: number;
}

interface SeenOptions<Thing> {
  /** As the person has it before them. */
  readonly thing: Thing | undefined;
  /** Reads it as it is now; undefined where it is gone. */
  read(): Promise<Thing | undefined>;
  /** What it is now, in words. */
  wordsOf(thing: Thing): string;
}

/**
 * Gives a function that sends a change with the version that the person has seen. Where somebody
 * else was first, it fails with what the thing is now, and a second try replaces that.
 */
export function useSeenVersion<Thing extends Versioned>({
  thing,
  read,
  wordsOf,
}: SeenOptions<Thing>) {
  const seen = useRef(thing?.version ?? 0);
  return async <Answer>(send: (version: number) => Promise<Answer>): Promise<Answer> => {
    try {
      return await send(seen.current);
    } catch (err) {
      if (!isConflict(err)) {
        throw err;
      }
      const now = await read();
      if (now === undefined) {
        throw err;
      }
      seen.current = now.version ?? 0;
      throw new CallError(
        `Somebody else has changed it meanwhile. It is now: ${wordsOf(now)}. Save again to have it as you wrote it.`,
        { cause: err },
      );
    }
  };
}
