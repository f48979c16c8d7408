/** Where a worker finds the models of its service. */

/** The variable in which a worker finds them: a JSON object of folders by names. */
const MODELS_VARIABLE = "TESSERA_MODELS";

/**
 * The folder with the files of a model that the service has (`models`), read-only. Throws where the
 * service has no model of this name.
 */
export function modelPath(name: string): string {
  const models = JSON.parse(process.env[MODELS_VARIABLE] ?? "{}") as Readonly<
    Record<string, string>
  >;
  const path = Object.hasOwn(models, name) ? models[name] : undefined;
  if (path === undefined) {
    throw new Error(
      `there is no model ${JSON.stringify(name)} here: name it in service({ models: { ${JSON.stringify(name)}: "hf://…" } }), or in models of tessera.yaml; under tessera serve, --model ${name}=FOLDER says where it is`,
    );
  }
  return path;
}
