import { setFlagsFromString } from "node:v8";

/** Long beside a lull between two bursts of calls, short beside a night. */
const KEPT_MS = 10 * 60_000;

/**
 * Settings of V8 for a process that serves calls. They come before everything
 * else, because what V8 has once set out to do it does.
 *
 * Compiled code is kept through a lull. A process that has been idle for 8 s
 * gives memory back, and with that V8 drops all code whose assumptions name
 * shapes of objects that no object has any more, as those of requests while
 * there is none (`--trace-deopt` calls it "embedded weak objects cleared").
 * The first seconds after each lull then go to compiling it again, at two
 * thirds of the speed. So this is put off: it happens in the first lull after
 * `keptMs`, and not more often.
 *
 * Everything is made young. Where much of what a line of code makes survives
 * the first collections, V8 has that line make it old from then on. But its
 * young generation begins with 1 MB, which is less than the calls under way
 * take, so that all of them survive; and what is made old by mistake keeps
 * alive whatever it points to.
 */
export function setUpV8({ keptMs = KEPT_MS } = {}) {
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${keptMs}`);
  setFlagsFromString("--no-allocation-site-pretenuring");
}
