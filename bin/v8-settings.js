import { setFlagsFromString } from "node:v8";

/** Long beside a lull between two bursts of calls, short beside a night. */
const KEPT_MS = 10 * 60_000;

/**
 * V8 flags for a process that serves calls. They are set before anything else,
 * because V8 does not revise what it has already scheduled.
 *
 * Compiled code is kept through idle periods. After 8 s of idleness V8 releases
 * memory, and with it all optimized code that depends on object shapes without
 * live objects, such as those of requests (`--trace-deopt` calls it "embedded
 * weak objects cleared"). The first seconds after each idle period then go into
 * compiling it again, at two thirds of the speed. So this is delayed until the
 * first idle period after `keptMs`.
 *
 * All objects are allocated young (no pretenuring). When most objects of an
 * allocation site survive the first collections, V8 allocates them in the old
 * generation from then on. But the young generation starts at 1 MB, less than
 * the concurrent calls take, so all of their objects survive at first; and an
 * object that is old by mistake keeps alive whatever it points to.
 */
export function setUpV8({ keptMs = KEPT_MS } = {}) {
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${keptMs}`);
  setFlagsFromString("--no-allocation-site-pretenuring");
}
