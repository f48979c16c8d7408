/** Generates docs/configuration.md from the table of settings; a test keeps the two in step. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Setting, START_SETTINGS, WORKER_SETTINGS } from "../src/config/config.ts";

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
${Object.entries(START_SETTINGS).map(row).join("\n")}

## \`tessera worker\`

The settings of workers that join from another machine ([workers](workers.md)), from \`src/config/worker-settings.ts\`. There is a configuration file only where \`--config\` names one.

| key in the file | flag | variable | default | description | reason |
|---|---|---|---|---|---|
${Object.entries(WORKER_SETTINGS).map(row).join("\n")}
`;
}

function row([key, setting]: [string, Setting<unknown>]): string {
  const { variable, shownDefault, summary, reason } = setting;
  const flag =
    "flag" in setting ? `\`${setting.flag}\`` : "isSecret" in setting ? "none: secret" : "none";
  const otherwise = shownDefault === "" ? "none" : shownDefault;
  const cells = [`\`${key}\``, flag, `\`${variable}\``, otherwise, summary, reason];
  return `| ${cells
    .map((cell) => cell.replaceAll("|", "\\|").replaceAll("<", "&lt;"))
    .map(unescapeCode)
    .join(" | ")} |`;
}

/** Within backticks, Markdown shows HTML literally. */
function unescapeCode(cell: string): string {
  return cell.replaceAll(/`[^`]*`/g, (code) => code.replaceAll("&lt;", "<"));
}

if (import.meta.main) {
  writeFileSync(CONFIGURATION_PATH, configurationDocument());
}
