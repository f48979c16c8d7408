/** What an installation from npm goes without, and what is said where a setting asks for it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OPTIONAL_PACKAGES, withOptionalPackages } from "../../src/app/optional-packages.ts";
import { ConfigError } from "../../src/config/values.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The failure of an import, as Node rejects with it. */
const notFound = (name: string): Promise<never> =>
  Promise.reject(
    Object.assign(new Error(`Cannot find package '${name}' imported from /opt/s3.js`), {
      code: "ERR_MODULE_NOT_FOUND",
    }),
  );

describe("an optional package", () => {
  it("is a peer dependency that npm leaves out, and is there in development", () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const specified = Object.values(OPTIONAL_PACKAGES).flatMap(({ packages }) => packages);
    const names = specified.map((each) => each.slice(0, each.lastIndexOf("@"))).sort();
    expect(Object.keys(manifest.peerDependencies).sort()).toEqual(names);
    expect(manifest.peerDependenciesMeta).toEqual(
      Object.fromEntries(names.map((name) => [name, { optional: true }])),
    );
    for (const each of specified) {
      const at = each.lastIndexOf("@");
      const [name, range] = [each.slice(0, at), each.slice(at + 1)];
      expect(manifest.devDependencies[name]).toMatch(new RegExp(`^\\${range}\\.\\d`));
      expect(manifest.dependencies).not.toHaveProperty([name]);
    }
  });

  it("that is missing is named, with the setting that asks for it and the command", async () => {
    await expect(
      withOptionalPackages("s3", () => notFound("@aws-sdk/lib-storage")),
    ).rejects.toThrow(
      new ConfigError(
        "--blobs (TESSERA_BLOBS) or --model-buckets (TESSERA_MODEL_BUCKETS) names a bucket of S3, which needs packages that are not installed (@aws-sdk/lib-storage); install them where tessera-platform is installed: npm install @aws-sdk/client-s3@^3 @aws-sdk/lib-storage@^3",
      ),
    );
  });

  it("is not blamed for other failures", async () => {
    const another = await withOptionalPackages("s3", () => notFound("tslib")).catch((err) => err);
    expect(another).not.toBeInstanceOf(ConfigError);
    expect(another.message).toContain("'tslib'");
    const broken = new Error("Unexpected token");
    await expect(withOptionalPackages("tracing", () => Promise.reject(broken))).rejects.toBe(
      broken,
    );
    expect(await withOptionalPackages("tracing", async () => "adapter")).toBe("adapter");
  });
});
