import { expect } from "vitest";
import type { It } from "../contract.ts";

export function changesContract(it: It): void {
  it("lists changes in order after a sequence, with the latest", async (platform) => {
    const { accounts } = platform;
    expect(await accounts.listChanges({ afterSequence: 0, limit: 10 })).toEqual({
      changes: [],
      latest: 0,
    });
    const { organizationId } = await platform.setUp();
    const { token } = await platform.token(organizationId);
    await accounts.announceKeys(platform.deed());
    const all = [
      { sequence: 1, kind: "organization", id: organizationId },
      { sequence: 2, kind: "token", id: token.tokenId },
      { sequence: 3, kind: "keys", id: "" },
    ];
    const list = (afterSequence: number, limit: number) =>
      accounts.listChanges({ afterSequence, limit });
    expect(await list(0, 10)).toEqual({ changes: all, latest: 3 });
    expect(await list(0, 2)).toEqual({ changes: all.slice(0, 2), latest: 3 });
    expect(await list(2, 10)).toEqual({ changes: all.slice(2), latest: 3 });
    expect(await list(3, 10)).toEqual({ changes: [], latest: 3 });
  });

  it("shows no later change before an earlier one to who reads while many write", async (platform) => {
    const { accounts } = platform;
    const { organizationId, userId } = await platform.setUp();
    const organizations = [organizationId];
    for (const name of ["globex", "initech", "umbrella"]) {
      const ids = { organizationId: platform.newId("organization"), userId };
      await accounts.createOrganization({ ...platform.deed(), ...ids, name, displayName: "" });
      organizations.push(ids.organizationId);
    }
    const { latest: before } = await accounts.listChanges({ afterSequence: 0, limit: 0 });
    const writes = Array.from({ length: 80 }, (_, index) =>
      platform.token(organizations[index % organizations.length] ?? ""),
    );
    let writing = true;
    const written = Promise.all(writes).finally(() => {
      writing = false;
    });
    const seen: number[] = [];
    let last = before;
    for (let more = true; more; ) {
      // Once more after the last write.
      more = writing;
      const { changes } = await accounts.listChanges({ afterSequence: last, limit: 1_000 });
      seen.push(...changes.map(({ sequence }) => sequence));
      last = seen.at(-1) ?? last;
    }
    await written;
    expect(seen).toEqual(writes.map((_, index) => before + 1 + index));
  });
}
