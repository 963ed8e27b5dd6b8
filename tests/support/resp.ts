/** Parser of the Redis protocol. The fault runs use the same code. */
export { encodeCommand, type Frame, RespParser, type RespValue } from "../../verify/src/faults/topology/resp.js";
