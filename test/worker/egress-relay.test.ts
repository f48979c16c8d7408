import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { EgressPolicy } from "../../src/pool/egress/policy.ts";
import { EgressProxy } from "../../src/pool/egress/proxy.ts";
import { egressEnvironment } from "../../src/protocol/egress.ts";
import { leftOut } from "../needed.ts";

const ROOT = join(import.meta.dirname, "../..");
const SANDBOX = ["--unshare-net", "--unshare-user", "--ro-bind", "/", "/", "--die-with-parent"];
const left = leftOut(
  spawnSync("bwrap", [...SANDBOX, "true"]).status === 0 ? undefined : "bwrap makes no sandbox here",
);

it.skipIf(left !== "")(
  `Node's clients reach through the relay what the policy allows, and nothing else${left}`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "egress-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const server = createServer((req, res) => void res.end(`answer to ${req.url}`));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const decisions: string[] = [];
    await using proxy = new EgressProxy({
      path: join(folder, "egress.sock"),
      policy: new EgressPolicy({
        network: { access: "open", hosts: [] },
        allowed: [`127.0.0.1:${port}`],
      }),
      resolve: async () => ["127.0.0.1"],
      onDecision: (decision) => decisions.push(decision),
      onLine: () => {},
    });
    await proxy.start();
    const { stdout } = await promisify(execFile)(
      "bwrap",
      [
        ...[...SANDBOX, process.execPath, "--permission", `--allow-fs-read=${ROOT}`],
        ...[join(import.meta.dirname, "egress-client.ts"), `http://service.example:${port}/path`],
      ],
      { env: egressEnvironment({ socketPath: proxy.path }) },
    );
    expect(JSON.parse(stdout)).toEqual({
      fetched: "answer to /path",
      got: "answer to /path",
      refused: 403,
      direct: "ECONNREFUSED",
    });
    expect(decisions.toSorted()).toEqual(["allowed", "allowed", "refused"]);
  },
);
