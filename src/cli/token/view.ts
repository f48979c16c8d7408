/** Formats tokens for people. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Token, TokenSchema } from "../../client/index.ts";
import type { CommandRun } from "../command.ts";
import { fields, moment } from "../output.ts";
import { type Table, table } from "../table.ts";
import { accessText, kindText } from "./flags.ts";

export function tokenTable(tokens: readonly Token[], nowMs: number): Table {
  return table(
    ["ID", "NAME", "KIND", "ACCESS", "VALUE", "EXPIRES", "LAST USED"],
    tokens.map((token) => [
      token.tokenId,
      token.name,
      kindText(token.kind),
      accessText(token.access),
      `${token.hint}…`,
      expiry(token, nowMs),
      moment(token.lastUsedAt),
    ]),
    { empty: "No tokens", drop: ["VALUE", "LAST USED", "KIND"] },
  );
}

function tokenFields(token: Token, nowMs: number): string {
  const used = moment(token.lastUsedAt);
  return fields([
    ["id", token.tokenId],
    ["name", token.name],
    ["description", token.description],
    ["organization", token.organization],
    ["kind", kindText(token.kind)],
    ["access", accessText(token.access)],
    ["deployments", token.allDeployments ? "all" : token.deployments.join(", ")],
    ["value", `${token.hint}…`],
    ["expires", expiry(token, nowMs)],
    ["not before", moment(token.notBefore)],
    ["networks", token.allowedNetworks.join(", ")],
    ["scraped at", token.monitoringUrl],
    ["last used", used === "" ? "never" : `${used} from ${token.lastUsedAddress}`],
    ["old value", oldValue(token, nowMs)],
    ["created", `${moment(token.createdAt)} by ${token.createdBy}`],
    ["changed", `${moment(token.updatedAt)}, version ${token.version}`],
  ]);
}

/** Shows one token. */
export function showToken(call: CommandRun, token: Token): void {
  call.show(TokenSchema, token, (shown) => tokenFields(shown, call.clock.now()));
}

function expiry({ expiresAt }: Token, nowMs: number): string {
  if (expiresAt === undefined) {
    return "";
  }
  const ended = timestampMs(expiresAt) <= nowMs;
  return `${moment(expiresAt)}${ended ? " (expired)" : ""}`;
}

function oldValue({ previousValidUntil: until }: Token, nowMs: number): string {
  return until === undefined || timestampMs(until) <= nowMs ? "" : `valid until ${moment(until)}`;
}

/**
 * Shows a new value: only the value goes to standard output, so that `$(…)`
 * captures exactly that; the explanation goes to standard error.
 */
export function showValue(
  { terminal, context }: CommandRun,
  {
    token,
    value,
    intro,
    login,
  }: {
    readonly token: Token | undefined;
    readonly value: string;
    readonly intro: string;
    /** The command that logs in with it; empty for tokens that cannot log in. */
    readonly login: string;
  },
): void {
  terminal.say(`${intro} Its value:\n`);
  terminal.answer(value);
  const again =
    token?.revealable === true
      ? `Keep it safe. Admins can see it again: tessera token reveal ${token.tokenId}`
      : "Keep it now: it cannot be shown again.";
  terminal.say(`\n${again}`);
  if (token !== undefined && token.monitoringUrl !== "") {
    terminal.say(`A Prometheus reads the metrics with it at ${token.monitoringUrl}`);
  }
  if (login !== "") {
    // The server's command contains the value, which logs must not get a second
    // time.
    const command = terminal.interactive
      ? login
      : `tessera cloud login --api-token - --endpoint ${context.endpoint}`;
    terminal.say(`Log in with it: ${command}`);
  }
}
