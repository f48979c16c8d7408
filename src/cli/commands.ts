/**
 * The commands in one line each: all that the program's help, its suggestions and completion need
 * to know of a command that is not run. What a command does is loaded when it is named.
 */
import { Command } from "commander";

export interface CommandSummary {
  readonly name: string;
  readonly summary: string;
  /** Runs, but is not in the list of commands: for programs, or a topic of the help. */
  readonly hidden?: true;
}

export const COMMANDS = [
  { name: "init", summary: "Make a project of a small service, with a test and settings." },
  { name: "serve", summary: "Serve one service from its source file, for developing it." },
  { name: "dev", summary: "Serve one service, and reload it when its source changes." },
  { name: "build", summary: "Build one self-contained artifact of a service, for deploying it." },
  { name: "start", summary: "Run the platform: people, organizations, tokens, deployments." },
  { name: "admin", summary: "Operate the platform of this machine." },
  { name: "worker", summary: "Join this machine to a platform, and run calls on it." },
  { name: "machine", summary: "See the machines that run workers, and drain them." },
  { name: "launcher", summary: "Start machines for a platform, as many as it wants." },
  { name: "deploy", summary: "Deploy a service: build it, upload it, wait until it is ready." },
  { name: "call", summary: "Call an endpoint and write what it returns." },
  { name: "task", summary: "Submit tasks to a deployment, and see to them." },
  { name: "client", summary: "Make clients of deployments." },
  { name: "cloud", summary: "Log in to a platform, and out of it." },
  { name: "open", summary: "Open the console in the browser." },
  { name: "token", summary: "Make, see, change and delete API tokens." },
  { name: "org", summary: "Make, see and change organizations." },
  { name: "member", summary: "See and change who belongs to an organization." },
  { name: "deployment", summary: "See, change, stop and delete deployments." },
  { name: "secret", summary: "List, set and delete the secrets of a deployment." },
  { name: "schedule", summary: "Call a task endpoint at the times of a cron expression." },
  { name: "model", summary: "Push, import, see and delete models: weights by name." },
  { name: "webhook", summary: "Tell a server of yours how the tasks of a deployment end." },
  { name: "alert", summary: "Be told when something is wrong, and when it is over." },
  { name: "usage", summary: "See who used what: calls, tasks, seconds, units of your own." },
  { name: "budget", summary: "Bound what is used in a day or a month: calls, seconds, units." },
  { name: "audit", summary: "See what happened in an organization." },
  { name: "completion", summary: "Write the script with which a shell completes commands." },
  { name: "environment", summary: "The variables that the command line reads.", hidden: true },
  { name: "exit-codes", summary: "What the exit codes mean.", hidden: true },
  { name: "complete", summary: "Answer a shell's question for completions.", hidden: true },
] as const satisfies readonly CommandSummary[];

export type CommandName = (typeof COMMANDS)[number]["name"];

/** Loads one command. */
export type LoadCommand = (name: CommandName) => Promise<Command>;

/** The command that the arguments name, also after `help`; undefined where they name none. */
export function commandNamed(argv: readonly string[]): CommandName | undefined {
  const [first, second] = argv.filter((word) => !word.startsWith("-"));
  const named = first === "help" ? second : first;
  return COMMANDS.find(({ name }) => name === named)?.name;
}

/** A command of which only its line in the program's help is known. */
export function summarized({ name, summary }: CommandSummary): Command {
  return new Command(name).summary(summary);
}
