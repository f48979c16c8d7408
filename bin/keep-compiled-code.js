import { setFlagsFromString } from "node:v8";

/** Long beside a lull between two bursts of calls, short beside a night. */
const KEPT_MS = 10 * 60_000;

/**
 * Keeps the code that V8 has compiled for calls through a lull.
 *
 * A process that has been idle for 8 s gives memory back, and with that V8
 * drops all code whose assumptions name shapes of objects that no object has
 * any more, as those of requests while there is none (`--trace-deopt` calls it
 * "embedded weak objects cleared"). The first seconds after each lull then go
 * to compiling it again, at two thirds of the speed. So this is put off: it
 * happens in the first lull after `keptMs`, and not more often.
 *
 * Comes before everything else, because what V8 has once set out to do it does.
 */
export function keepCompiledCode(keptMs = KEPT_MS) {
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${keptMs}`);
}
