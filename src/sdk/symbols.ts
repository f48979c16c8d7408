/**
 * The marks by which the host knows what user code defined. They are
 * registered symbols, so that two copies of the SDK in one process
 * understand each other's services and errors.
 */
export const SERVICE: unique symbol = Symbol.for("tessera.service");
export const ENDPOINT: unique symbol = Symbol.for("tessera.endpoint");
export const ENDPOINT_METHODS: unique symbol = Symbol.for("tessera.endpointMethods");
export const ERROR_CODE: unique symbol = Symbol.for("tessera.errorCode");
