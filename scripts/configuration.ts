/** Generates docs/configuration.md from the table of settings; a test keeps the two in step. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { LAUNCHER_SETTINGS } from "../src/config/launcher-settings.ts";
import { SERVE_SETTINGS } from "../src/config/serve-settings.ts";
import type { Settings } from "../src/config/settings.ts";
import { START_SETTINGS } from "../src/config/start-settings.ts";
import { WORKER_SETTINGS } from "../src/config/worker-settings.ts";

export const CONFIGURATION_PATH = fileURLToPath(
  new URL("../docs/configuration.md", import.meta.url),
);

/** The whole document. */
export function configurationDocument(): string {
  return `# Configuration of \`tessera start\`

This page is generated from \`src/config/start-settings.ts\` by \`node scripts/configuration.ts\`.

Flags take precedence over environment variables, these over the configuration file, and the file over the defaults. The file is \`tessera.json\` in the working directory, or the one that \`--config\` (\`TESSERA_CONFIG\`) names; it is a JSON object with the keys below:

\`\`\`json
{
  "port": 8080,
  "publicUrl": "https://tessera.example.com",
  "trustedProxies": ["10.0.0.0/8"]
}
\`\`\`

Times are written \`30s\`, \`10m\`, \`12h\`, \`7d\`; sizes \`512KiB\`, \`64MiB\`, \`1GiB\`. Secret settings have no flag, because other users of the machine can see a command line; a file that contains a secret must be readable by its owner only (mode 0600). \`tessera admin\` accepts the settings for the data: \`dataFolder\`, \`database\`, \`directDatabase\` and \`keys\`, and \`admin backup\` and \`admin restore\` also \`blobs\`, and a passphrase in \`TESSERA_BACKUP_PASSPHRASE\` ([backup](backup.md)).

| key in the file | flag | variable | default | description | reason |
|---|---|---|---|---|---|
${rowsOf(START_SETTINGS)}

## \`tessera worker\`

The settings of workers that join from another machine ([workers](workers.md)), from \`src/config/worker-settings.ts\`. There is a configuration file only where \`--config\` names one.

| key in the file | flag | variable | default | description | reason |
|---|---|---|---|---|---|
${rowsOf(WORKER_SETTINGS)}

## \`tessera launcher\`

The settings of a launcher, which starts machines for workers ([launchers](scaling.md#launchers)), from \`src/config/launcher-settings.ts\`. There is a configuration file only where \`--config\` names one.

| key in the file | flag | variable | default | description | reason |
|---|---|---|---|---|---|
${rowsOf(LAUNCHER_SETTINGS)}

## \`tessera serve\` and \`tessera dev\`

The settings of a service that is developed on this machine, from \`src/config/serve-settings.ts\`. There is no configuration file, and few settings have a variable: the shell of a developer has those of other programs.

| flag | variable | default | description | reason |
|---|---|---|---|---|
${rowsOf(SERVE_SETTINGS, { keys: false })}
`;
}

function rowsOf(table: Settings, { keys } = { keys: true }): string {
  return Object.entries(table)
    .map(([key, setting]) => {
      const { flag, variable, isSecret, shownDefault, summary, reason } = setting;
      const named = flag === undefined ? (isSecret ? "none: secret" : "none") : `\`${flag}\``;
      const cells = [
        ...(keys ? [`\`${key}\``] : []),
        named,
        variable === undefined ? "none" : `\`${variable}\``,
        shownDefault === "" ? "none" : shownDefault,
        summary,
        reason,
      ];
      return `| ${cells
        .map((cell) => cell.replaceAll("|", "\\|").replaceAll("<", "&lt;"))
        .map(unescapeCode)
        .join(" | ")} |`;
    })
    .join("\n");
}

/** Within backticks, Markdown shows HTML literally. */
function unescapeCode(cell: string): string {
  return cell.replaceAll(/`[^`]*`/g, (code) => code.replaceAll("&lt;", "<"));
}

if (import.meta.main) {
  writeFileSync(CONFIGURATION_PATH, configurationDocument());
}
