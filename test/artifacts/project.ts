/** A folder with a service and packages, as somebody would have it. */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export class Project implements AsyncDisposable {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Makes one of files by path; a value that begins with `-> ` is a link. */
  static async create(files: Readonly<Record<string, string>>, prefix = "project-") {
    const folder = await realpath(await mkdtemp(join(tmpdir(), `tessera-test-${prefix}`)));
    const project = new Project(folder);
    await project.write(files);
    return project;
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [path, content] of Object.entries(files)) {
      const file = this.path(path);
      await mkdir(dirname(file), { recursive: true });
      await (content.startsWith("-> ")
        ? symlink(content.slice(3), file)
        : writeFile(file, content));
    }
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** The source of a service whose endpoint `go` answers with an expression, after some imports. */
export function serviceSource(expression: string, imports = ""): string {
  return `${imports}
import { api, service, withJsonSchema } from "tessera-platform";
const any = withJsonSchema({
  "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) },
}, { input: { type: "object", properties: {} } });
export default service({
  name: "tried",
  endpoints: { go: api({ input: any as never }, async () => (${expression}) as never) },
});
`;
}

/** The files of an installed package. */
export function installed(
  folder: string,
  files: Readonly<Record<string, string>>,
  description: object = {},
): Record<string, string> {
  const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
  const json = { name, version: "1.0.0", main: "index.js", ...description };
  return {
    [`${folder}/package.json`]: JSON.stringify(json),
    ...Object.fromEntries(
      Object.entries(files).map(([path, content]) => [`${folder}/${path}`, content]),
    ),
  };
}
