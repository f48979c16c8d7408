import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { NetworkAccess } from "../../../src/client/index.ts";
import { skipped } from "../../pool/sandbox/available.ts";
import { artifact, World } from "./world.ts";

async function listening() {
  const server = createServer((_req, res) => res.end("hello")).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => server.close(),
  };
}

it.skipIf(skipped)(
  `a service reaches what its deployment and the operator allow, and nothing else${skipped}`,
  async () => {
    using near = await listening();
    using other = await listening();
    await using world = await World.start({ config: { allowedEgress: [near.host] } });
    const reach = async (name: string, from: { url: string }, by = "ask"): Promise<unknown> => {
      return (await world.call(name, `/${by}`, { body: { url: from.url } })).json;
    };
    const reaching = await artifact("reaching");
    await world.deployed("open", reaching, {});
    expect(await reach("open", near)).toBe("200 hello");
    expect(await reach("open", near, "fetch")).toBe("200 hello");
    expect(await reach("open", other, "fetch")).toBe("failed");
    expect(await reach("open", other)).toMatch(/^403 .*loopback.*--allow-egress/);
    const network = { access: NetworkAccess.ALLOW, hosts: ["a.example"] };
    await world.deployed("allow", reaching, { settings: { network } });
    expect(await reach("allow", near)).toMatch(/^403 .* is not among/);
    await world.deployed("none", reaching, {
      settings: { network: { access: NetworkAccess.NONE } },
    });
    expect(await reach("none", near)).toBe("failed");
    const variable = await world.call("none", "/variable", { body: { name: "HTTP_PROXY" } });
    expect(variable.json).toBeNull();
  },
  120_000,
);

it("a network that the sandbox cannot hold is refused, and never silently open", async () => {
  await using world = await World.start({ config: { sandbox: "permission" } });
  const network = { access: NetworkAccess.NONE };
  await expect(
    world.deploy("none", await artifact("reaching"), { settings: { network } }),
  ).rejects.toThrow(/network none needs the kernel.s sandbox/);
  await world.deployed("open", await artifact("reaching"));
  await expect(
    world.client.deployments.updateDeployment({
      deployment: { name: "open", settings: { network } },
      updateMask: { paths: ["settings.network"] },
    }),
  ).rejects.toThrow(/network none needs the kernel.s sandbox/);
}, 60_000);
