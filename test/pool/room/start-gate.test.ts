import { expect, it } from "vitest";
import { StartGate } from "../../../src/pool/room/start-gate.ts";

const calm = (): boolean => false;
const urgent = (): boolean => true;

/** Lets everything run that does not wait for a timer. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it("lets in as many as may start at a time, and the next when one leaves", async () => {
  const gate = new StartGate(2);
  const [first] = await Promise.all([gate.enter(calm), gate.enter(calm)]);
  const entered: string[] = [];
  void gate.enter(calm).then(() => entered.push("third"));
  void gate.enter(calm).then(() => entered.push("fourth"));
  await turn();
  expect(entered).toEqual([]);
  first?.();
  first?.();
  await turn();
  expect(entered).toEqual(["third"]);
});

it("lets those in first for whom somebody waits", async () => {
  const gate = new StartGate(1);
  const leave = await gate.enter(calm);
  const entered: string[] = [];
  void gate.enter(calm).then(() => entered.push("calm"));
  void gate.enter(urgent).then(() => entered.push("urgent"));
  leave();
  await turn();
  expect(entered).toEqual(["urgent"]);
});

it("asks the next one when the first does not want to start any more", async () => {
  const gate = new StartGate(1);
  const leave = await gate.enter(calm);
  gate.tryEnter({ isUrgent: urgent, again() {} });
  const next = gate.enter(calm);
  leave();
  expect(await next).toEqual(expect.any(Function));
});

it("rejects for who gives up, and keeps the room for others", async () => {
  const gate = new StartGate(1);
  const leave = await gate.enter(calm);
  const abort = new AbortController();
  const given = gate.enter(calm, abort.signal);
  abort.abort(new Error("given up"));
  await expect(given).rejects.toThrow("given up");
  leave();
  expect(gate.tryEnter({ isUrgent: calm, again() {} })).toEqual(expect.any(Function));
});

it("does not count one any more that takes long", async () => {
  const gate = new StartGate(1, { longMs: 20 });
  await gate.enter(calm);
  expect(await gate.enter(calm)).toEqual(expect.any(Function));
});
