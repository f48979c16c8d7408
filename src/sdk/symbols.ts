/**
 * The symbols by which a worker recognizes services, endpoints and errors of user
 * code. They are registered symbols, so that two copies of the SDK in one process
 * understand each other.
 */
export const SERVICE: unique symbol = Symbol.for("tessera.service");
export const ENDPOINT: unique symbol = Symbol.for("tessera.endpoint");
export const ENDPOINT_METHODS: unique symbol = Symbol.for("tessera.endpointMethods");
export const SOCKET: unique symbol = Symbol.for("tessera.socket");
export const STREAM: unique symbol = Symbol.for("tessera.stream");
export const ERROR_CODE: unique symbol = Symbol.for("tessera.errorCode");
