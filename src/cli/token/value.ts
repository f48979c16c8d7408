/** `tessera token rotate` and `reveal`: the values of tokens. */
import type { Command } from "commander";
import { RevealTokenResponseSchema, RotateTokenResponseSchema } from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "../command.ts";
import { environmentContext, writeContext } from "../context.ts";
import { parseDuration } from "../durations.ts";
import {
  ELEVATED_NOTE,
  SESSION_NOTE,
  SESSION_OPTIONS,
  type SessionFlags,
  withSession,
  withTokenOrSession,
} from "../session.ts";
import { toDuration } from "../times.ts";
import { findToken, TOKEN } from "./find.ts";
import { showValue } from "./view.ts";

interface RotateFlags extends SessionFlags {
  readonly grace?: string;
}

export function rotateCommand(actions: CloudActions): Command {
  return callCommand<RotateFlags>("rotate", actions, {
    description: `Give a token a new value, which is shown once, on standard output. ${ELEVATED_NOTE}`,
    arguments: [TOKEN],
    options: [
      option(
        "--grace <duration>",
        "how long the old value stays valid, up to 7d (default: it ends)",
      ),
      ...SESSION_OPTIONS,
    ],
    examples: ["tessera token rotate ci --grace 24h"],
    run: async (call, flags, [token = ""]) => {
      const grace =
        flags.grace === undefined ? undefined : toDuration(parseDuration("--grace", flags.grace));
      const { tokenId, name } = await findToken(call, token);
      const own = (await call.principal()).tokenId === tokenId;
      const rotated = await withTokenOrSession(call, flags, (client, organization, options) =>
        client.tokens.rotateToken(
          { organization, tokenId, ...(grace !== undefined && { grace }) },
          options,
        ),
      );
      if (call.output === "json") {
        call.show(RotateTokenResponseSchema, rotated, () => "");
      } else {
        const intro = `Token ${name} has a new value.`;
        showValue(call, { token: rotated.token, value: rotated.value, intro, login: "" });
      }
      if (own) {
        await keepOwn(call, rotated.value);
      }
    },
  });
}

/** Stores the new value when the rotated token is the login's own. */
async function keepOwn(call: CommandRun, apiToken: string): Promise<void> {
  if (environmentContext(call.environment) !== undefined) {
    call.terminal.say("SERVICE_CLOUD_API_KEY is this token: give it the new value");
    return;
  }
  await writeContext(call.environment, { ...call.context, apiToken });
  call.terminal.say("Your login is by this token, and has the new value now.");
}

export function revealCommand(actions: CloudActions): Command {
  return callCommand<SessionFlags>("reveal", actions, {
    description: `Show the value of an organization token again. ${SESSION_NOTE}`,
    arguments: [TOKEN],
    options: SESSION_OPTIONS,
    examples: [
      "tessera token reveal ci",
      "tessera token reveal ci --email ada@example.com --password-stdin < password.txt",
    ],
    run: async (call, flags, [token = ""]) => {
      const { tokenId } = await findToken(call, token);
      const organization = await call.organizationName();
      const revealed = await withSession(call, flags, (client, options) =>
        client.tokens.revealToken({ organization, tokenId }, options),
      );
      call.show(RevealTokenResponseSchema, revealed, ({ value }) => value);
    },
  });
}
