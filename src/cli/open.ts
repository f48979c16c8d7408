/** `tessera open`: opens the console, or the page of a deployment in it, in the browser. */
import type { Command } from "commander";
import { openBrowser } from "./browser.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "./command.ts";

interface OpenFlags {
  /** False for `--no-browser`. */
  readonly browser: boolean;
}

export function openCommand(actions: CloudActions): Command {
  return callCommand<OpenFlags>("open", actions, {
    description:
      "Open the console of the platform, or a deployment's page in it. Without a browser on this machine, writes the URL.",
    arguments: [["[deployment]", "the deployment to show (default: the console's first page)"]],
    options: [option("--no-browser", "write the URL only")],
    examples: ["tessera open", "tessera open summarizer", "tessera open summarizer --no-browser"],
    run: async (call, { browser }, [deployment]) => {
      const url = await pageOf(call, deployment);
      if (call.output === "json") {
        call.terminal.answer(JSON.stringify({ url }, null, 2));
        return;
      }
      if (browser && call.environment.canOpenBrowser && (await openBrowser(url))) {
        call.done(`Opened ${url}`);
        return;
      }
      call.terminal.answer(url);
    },
  });
}

async function pageOf(call: CommandRun, deployment: string | undefined): Promise<string> {
  const { context, client, organization: given } = call;
  if (deployment === undefined) {
    return given === "" ? `${context.endpoint}/` : `${context.endpoint}/o/${given}`;
  }
  // A name that does not exist is refused here rather than shown as an empty page.
  const found = await client.deployments.getDeployment({ organization: given, deployment });
  return `${context.endpoint}/o/${found.organization}/deployments/${found.name}`;
}
