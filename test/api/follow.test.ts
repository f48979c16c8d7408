import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { DeploymentSchema } from "../../gen/tessera/v1/deployment_pb.js";
import { differences, Followers, follow, shownById } from "../../src/api/follow.ts";

interface State {
  readonly number: number;
}

const TELLING = {
  changeOf: (sent: State | undefined, next: State) =>
    sent?.number === next.number ? undefined : next,
  unchanged: () => ({}),
};

async function said(read: () => Promise<State>, forMs: number, keepAliveMs: number) {
  const messages: object[] = [];
  const { signal } = new AbortController();
  const following = follow({ get: read }, { signal, forMs, keepAliveMs }, TELLING);
  for await (const message of following) {
    messages.push(message);
  }
  return messages;
}

it("a state without a change is told once", async () => {
  expect(await said(async () => ({ number: 1 }), 1_100, 60_000)).toEqual([{ number: 1 }]);
});

it("a state without a change has a message that says nothing, when none came for a while", async () => {
  expect(await said(async () => ({ number: 1 }), 1_100, 500)).toEqual([{ number: 1 }, {}]);
});

it("a state that cannot be read ends the stream with the error", async () => {
  const failing = () => Promise.reject(new Error("the database is away"));
  await expect(said(failing, 1_000, 1_000)).rejects.toThrow("the database is away");
});

it("no more than 500 follow at once, 375 of one organization, and the next has the place of one who left", async () => {
  const followers = new Followers<State>("states");
  const leaving = new AbortController();
  const { signal } = leaving;
  let reads = 0;
  const read = async () => {
    reads += 1;
    return { number: 1 };
  };
  const newOne = (organizationId = "acme") =>
    followers.follow({ organizationId, key: "a", read, forMs: undefined, signal }, TELLING);
  const refused = { reason: "TOO_MANY_WAITING" };
  const all = Array.from({ length: 375 }, () => newOne());
  await Promise.all(all.map((one) => one.next()));
  expect(reads).toBe(1);
  await expect(newOne().next()).rejects.toMatchObject(refused);
  const others = Array.from({ length: 125 }, () => newOne("umbrella"));
  await Promise.all(others.map((one) => one.next()));
  await expect(newOne("third").next()).rejects.toMatchObject(refused);
  await all[0]?.return(undefined);
  expect(await newOne().next()).toMatchObject({ value: { number: 1 } });
  leaving.abort();
});

it("messages that are as they were before are no difference", () => {
  const one = (name: string, workers: number) =>
    [name, create(DeploymentSchema, { name, workers })] as const;
  const before = shownById(DeploymentSchema, [one("a", 1), one("b", 1), one("c", 1)]);
  const after = shownById(DeploymentSchema, [one("b", 1), one("c", 2), one("d", 1)], before);
  expect(differences(before, after)).toMatchObject({
    changed: [
      { name: "c", workers: 2 },
      { name: "d", workers: 1 },
    ],
    removedIds: ["a"],
  });
});
