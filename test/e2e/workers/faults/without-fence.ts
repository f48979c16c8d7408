/** Preloaded by an agent that is to ignore its own timers: its fence never closes. */
import { Fence } from "../../../../src/agent/fence.ts";

Object.defineProperties(Fence.prototype, {
  look: { value() {} },
  acknowledged: { value() {} },
  isOpen: { get: () => true },
  isOver: { get: () => false },
});
