/** `tessera help environment` and `tessera help exit-codes`: what holds for all commands. */
import { Command } from "commander";
import type { CloudActions } from "./command.ts";

const ENVIRONMENT = `Variables that the command line reads. A flag goes before its variable.

Calling a platform:
  SERVICE_CLOUD_API_ENDPOINT  the platform, such as https://tessera.example.com
  SERVICE_CLOUD_API_KEY       a token for it: both together precede the login
  TESSERA_TOKEN               the token that call and task send to deployments;
                              for serve, the one that callers have to send
  XDG_CONFIG_HOME             the folder with the login, tessera/context.json
                              (default: ~/.config; on Windows: APPDATA)
  NODE_EXTRA_CA_CERTS         a file of authorities that are trusted for TLS

What is written:
  NO_COLOR                    set to anything: no colours
  DISPLAY, WAYLAND_DISPLAY    without them, and over SSH, no browser is opened

Building services in Python:
  VIRTUAL_ENV                 the environment whose interpreter is taken
  TESSERA_UV                  the program uv (default: it is fetched)
  PIP_INDEX_URL, UV_INDEX, …  where packages come from, for pip and uv
  REGISTRY_AUTH_FILE          credentials for registries of images, for skopeo

Models:
  HF_TOKEN                    a token of Hugging Face: deploy and model import
  BENTOML_HOME                the folder of BentoML with its models: deploy
                              (default: ~/bentoml)

Running something:
  TESSERA_LOG_LEVEL           debug, info, warn, error, silent: serve and start
  TESSERA_WORKER_TOKEN        the token with which worker joins a platform
  TESSERA_BACKUP_PASSPHRASE   seals the keys in a backup of admin backup

Each setting of start, worker and admin has a variable: their --help names it,
and docs/configuration.md lists them all.
`;

const EXIT_CODES = `Exit codes, the same for every command; scripts may rely on them.

  0    done
  1    failed
  2    the command line is wrong, or the server refuses a value of it
  3    not logged in, or the token is not valid
  4    not found
  130  interrupted by Ctrl-C
`;

const TOPICS = { environment: ENVIRONMENT, "exit-codes": EXIT_CODES } as const;

type TopicName = keyof typeof TOPICS;

/** A command that writes the text, also as its help. */
export function topicCommand(name: TopicName, { streams: { stdout } }: CloudActions): Command {
  return new Command(name)
    .configureHelp({ formatHelp: () => TOPICS[name] })
    .action(() => void stdout.write(TOPICS[name]));
}
