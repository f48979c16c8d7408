import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { workerRights } from "../../src/deployments/permissions.ts";
import { permissionFlags } from "../../src/pool/launch/node.ts";

const SCRATCH = "/scratch";

it("allows reading the service's folder, its packages and what these link to, and no more", async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "permissions-test-")));
  try {
    const service = join(root, "workspace/service");
    const linked = join(root, "linked");
    await mkdir(join(service, "node_modules/own"), { recursive: true });
    await mkdir(join(root, "workspace/node_modules/@scope"), { recursive: true });
    await mkdir(linked);
    await mkdir(join(root, "secret"));
    await symlink(linked, join(root, "workspace/node_modules/@scope/linked"));
    await writeFile(join(root, "workspace/package.json"), "{}");

    const rights = workerRights({
      servicePath: join(service, "service.ts"),
      scratchFolder: SCRATCH,
    });
    const flags = permissionFlags(rights);

    expect(flags[0]).toBe("--permission");
    const inRoot = flags.filter((flag) => flag.includes(root));
    expect(inRoot).toEqual([
      `--allow-fs-read=${service}`,
      `--allow-fs-read=${join(root, "workspace/package.json")}`,
      `--allow-fs-read=${join(root, "workspace/node_modules")}`,
      `--allow-fs-read=${linked}`,
    ]);
    expect(flags.filter((flag) => !/^--permission$|^--allow-fs-read=/.test(flag))).toEqual([
      `--allow-fs-write=${SCRATCH}`,
    ]);
  } finally {
    await rm(root, { recursive: true });
  }
});

it("allows what the operator allows, and where a link of theirs leads", async () => {
  const root = await realpath(await mkdtemp(join(tmpdir(), "permissions-test-")));
  try {
    await mkdir(join(root, "models"));
    await symlink(join(root, "models"), join(root, "link"));
    const access = {
      read: [join(root, "link")],
      addons: true,
      threads: true,
      processes: false,
      env: {},
    };
    const service = { servicePath: "/service/service.ts", scratchFolder: SCRATCH };
    const flags = permissionFlags(workerRights(service, access));
    expect(flags).toContain(`--allow-fs-read=${join(root, "link")}`);
    expect(flags).toContain(`--allow-fs-read=${join(root, "models")}`);
    expect(flags).toEqual(expect.arrayContaining(["--allow-addons", "--allow-worker"]));
  } finally {
    await rm(root, { recursive: true });
  }
});
