/** A program for a sandbox without a network: starts the relay as a worker does, and uses Node's clients. */
import { once } from "node:events";
import http from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { EGRESS_SOCKET_VARIABLE } from "../../src/protocol/egress.ts";
import { startEgressRelay } from "../../src/worker/egress-relay.ts";

const [url = ""] = process.argv.slice(2);
await startEgressRelay(process.env[EGRESS_SOCKET_VARIABLE] ?? "");
const [got] = await once(http.get(url), "response");
const [refused] = await once(http.get("http://169.254.169.254/"), "response");
const direct = connect(Number(new URL(url).port), "127.0.0.1");
const [failure] = await once(direct, "error");
const answers = {
  fetched: await (await fetch(url)).text(),
  got: await text(got),
  refused: refused.statusCode,
  direct: failure.code,
};
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
