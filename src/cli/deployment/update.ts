/** `tessera deployment update`: changes a deployment's settings and authorization. */
import type { Command } from "commander";
import { type CloudActions, callCommand } from "../command.ts";
import { usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import { SESSION_OPTIONS, type SessionFlags, withTokenOrSession } from "../session.ts";
import {
  CLEAR_OPTIONS,
  pathsOf,
  SETTINGS_OPTIONS,
  type SettingsFlags,
  settingsOf,
} from "./settings.ts";
import { NAME, showDeployment } from "./view.ts";

interface UpdateFlags extends SettingsFlags, SessionFlags {}

export function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description:
      "Change how a deployment runs, and whether callers need a token. Secrets are set by tessera secret. --no-authorization asks for your password where the login's token may not call the deployment itself.",
    arguments: [NAME],
    options: [...SETTINGS_OPTIONS, ...CLEAR_OPTIONS, ...SESSION_OPTIONS],
    examples: [
      "tessera deployment update summarizer --authorization",
      "tessera deployment update summarizer --workers 0..4 --memory 1Gi",
      "tessera deployment update summarizer --require gpu=* --place remote",
    ],
    run: async (call, flags, [name = ""]) => {
      const { deployment, paths } = changeOf(flags);
      const changed = await withTokenOrSession(call, flags, (client, organization, options) =>
        client.deployments.updateDeployment(
          { organization, deployment: { name, ...deployment }, updateMask: { paths } },
          options,
        ),
      );
      showDeployment(call, changed);
      if (flags.authorization === true) {
        call.done(
          plain(
            `Callers need a token: ${actions.program} token create caller --deployment ${name}`,
          ),
        );
      }
    },
  });
}

function changeOf({ authorization, ...flags }: UpdateFlags) {
  const settings = settingsOf(flags);
  const given = pathsOf(settings);
  const paths = [...(authorization === undefined ? [] : ["authorization"]), ...given];
  if (paths.length === 0) {
    throw usageError("say what to change, such as --authorization or --workers 1..4");
  }
  return {
    paths,
    deployment: {
      ...(authorization !== undefined && { authorization }),
      ...(given.length > 0 && { settings }),
    },
  };
}
