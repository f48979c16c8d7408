/** Preloaded by a process whose clock is to be wrong by `CLOCK_SHIFT_MS`. */
const shiftMs = Number(process.env.CLOCK_SHIFT_MS);
const RealDate = Date;
const realNow = Date.now;
Date.now = () => realNow() + shiftMs;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [Date.now()] : args));
  }
};
