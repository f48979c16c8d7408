import { describe, expect, it } from "vitest";
import { deploymentSecretContext, sealingContext } from "../../src/auth/keys.ts";
import { rotateKeys } from "../../src/auth/keys-file.ts";
import { reseal } from "../../src/auth/reseal.ts";
import { createTokenValue } from "../../src/auth/token-format.ts";
import { ACME, DATABASES, DEVELOPER, deed, openKeys, secretOf, setUp } from "./platform.ts";

describe.each(Object.entries(DATABASES))("sealed values on %s", (_name, open) => {
  it("are sealed again after a rotation of the keys, and open to what they were", async () => {
    await using databases = await open();
    const { accounts, hosting } = databases.one;
    using platform = await setUp(accounts);
    const keys = openKeys(platform.keysPath);
    const values = new Map<string, string>();
    for (let index = 0; index < 105; index += 1) {
      const [tokenId, value] = [`token ${index}`, createTokenValue("o")];
      const context = sealingContext(ACME, tokenId);
      values.set(tokenId, value);
      await accounts.createToken({
        ...deed(),
        organizationId: ACME,
        tokenId,
        kind: "organization",
        userId: undefined,
        fields: DEVELOPER,
        secret: {
          ...secretOf(value, keys),
          sealed: index === 0 ? "broken" : keys.seal(value, context),
        },
        limit: 1_000,
        personalLimit: 1_000,
      });
    }
    const key = { organizationId: ACME, deploymentId: "deployment 1", name: "API_KEY" };
    const secret = keys.seal("hunter2", deploymentSecretContext(key));
    await hosting.createRevision({
      ...deed(),
      organizationId: ACME,
      name: "summarizer",
      deploymentId: key.deploymentId,
      artifact: { digest: "none", index: "{}", endpoints: [], files: [] },
      secrets: { [key.name]: secret },
      limit: 1,
      maxSecrets: 1,
      keptRevisions: 1,
    });
    expect(await reseal({ accounts, hosting, keys })).toEqual({ resealed: 0, unreadable: 1 });
    rotateKeys(platform.keysPath);
    keys.reload();
    expect(await reseal({ accounts, hosting, keys })).toEqual({ resealed: 105, unreadable: 1 });
    expect(await reseal({ accounts, hosting, keys })).toEqual({ resealed: 0, unreadable: 1 });
    for (const tokenId of ["token 1", "token 104"]) {
      const sealed = await accounts.getSealed({ organizationId: ACME, tokenId });
      expect(keys.isSealCurrent(sealed ?? "")).toBe(true);
      const value = keys.unseal(sealed ?? "", sealingContext(ACME, tokenId));
      expect(value).toBe(values.get(tokenId));
    }
    const [sealed] = await hosting.getSecrets(key);
    expect(keys.isSealCurrent(sealed?.sealed ?? "")).toBe(true);
    expect(keys.unseal(sealed?.sealed ?? "", deploymentSecretContext(key))).toBe("hunter2");
  });
});
