/** A process that fetches a container image, for a test that kills it: store, registry, authorities, lock. */
import { Images } from "../../../src/artifacts/images/images.ts";
import { findSandbox } from "../../../src/pool/sandbox/sandbox.ts";

const [folder = "", host = "", authority = "", lock = ""] = process.argv.slice(2);
const searchPath = process.env.PATH ?? "";
const sandbox = await findSandbox("auto", searchPath);
if (sandbox.level !== "kernel") {
  throw new Error(sandbox.shortfall);
}
const images = new Images({
  ...{ sandbox, folder, searchPath, env: { SSL_CERT_FILE: authority }, allowed: [host] },
  ...{ maxBytesPerOrganization: 8 * 1024 ** 3, log: { info() {}, warn() {} }, now: Date.now },
});
await images.start();
await images.hold({ lock, organizationId: "acme" });
