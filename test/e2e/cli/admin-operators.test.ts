import { expect, it } from "vitest";
import { version } from "../../../src/version.ts";
import { Folder, PASSWORD, type Platform, start } from "../start/platform.ts";
import { Person } from "./person.ts";

/** Bob follows a link that somebody passed on. */
async function joinAsBob(platform: Platform): Promise<void> {
  const cookie = await platform.setUp();
  const invitation = { email: "bob@example.com" };
  const invited = await platform.call("/api/v1/members:invite", invitation, cookie);
  expect(invited.status, JSON.stringify(invited.json)).toBe(200);
  const accepted = await platform.call("/api/v1/auth:acceptInvitation", {
    invitation_code: new URL(String(invited.json.url)).hash.replace("#code=", ""),
    display_name: "Bob",
    password: PASSWORD,
  });
  expect(accepted.status, JSON.stringify(accepted.json)).toBe(200);
}

it("lists nodes and operators, makes a person one, and says when the address is not proved", async () => {
  using folder = new Folder();
  await using platform = await start(folder);
  using person = new Person();
  await joinAsBob(platform);
  const admin = (...args: readonly string[]) =>
    person.run(["admin", ...args, "--data", folder.data]);

  const listed = await admin("operators", "list");
  expect(listed.stdout).toMatch(/^E-MAIL ADDRESS +NAME\nada@example\.com *\S*\n$/);
  const added = await admin("operators", "add", "BOB@example.com");
  expect(added).toMatchObject({ code: 0 });
  expect(added.stderr).toBe(
    "bob@example.com is an operator now\n" +
      "The address is not proved: the account belongs to the person who opened its link.\n",
  );
  const both = await admin("operators", "list", "--output", "json");
  expect(JSON.parse(both.stdout)).toMatchObject([
    { email: "ada@example.com" },
    { email: "bob@example.com", display_name: "Bob" },
  ]);
  const removed = await admin("operators", "remove", "bob@example.com");
  expect(removed.stderr).toBe("bob@example.com is no operator any more\n");
  const nobody = await admin("operators", "add", "eve@example.com");
  expect(nobody.code).not.toBe(0);
  expect(nobody.stderr).toContain("have them invited to an organization first");

  const nodes = await admin("nodes");
  expect(nodes.stdout).toMatch(/^NODE +VERSION +SANDBOX .* STATE\n.* running\n$/);
  const [node] = JSON.parse((await admin("nodes", "--output", "json")).stdout);
  expect(node).toMatchObject({ version, workers: 0, draining: false, drained: false });

  expect(await admin("nodes", "drain", node.machine)).toMatchObject({
    code: 0,
    stderr: `${node.machine} takes no new work\n`,
  });
  expect((await admin("nodes")).stdout).toMatch(/ drained\n$/);
  const nowhere = await admin("nodes", "resume", "nowhere");
  expect(nowhere.code).not.toBe(0);
  expect(nowhere.stderr).toContain("tessera admin nodes lists them");
  expect((await admin("nodes", "resume", node.machine)).stderr).toContain("takes work again");
  expect((await admin("nodes")).stdout).toMatch(/ running\n$/);
});
