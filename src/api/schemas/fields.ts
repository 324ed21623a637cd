/** Schemas of fields that several responses have, and the type of a response body. */
import Type from 'typebox';

export const count = (description: string) => Type.Integer({ minimum: 0, description });
/** An integer as a decimal string: it may have more bits than a JSON number keeps. */
export const decimal = (description: string) => Type.String({ pattern: '^[0-9]+$', description });
export const dateTime = (description: string) => Type.String({ format: 'date-time', description });
export const orNull = <T extends Type.TSchema>(schema: T, description?: string) =>
  Type.Union([schema, Type.Null()], description === undefined ? {} : { description });
export const oneOf = <T extends string>(values: readonly T[], description?: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...(description !== undefined && { description }) });

/** The type of a response body with this schema, read-only at every depth. */
export type ResponseBody<T extends Type.TSchema> = DeepReadonly<Type.Static<T>>;

type DeepReadonly<T> = T extends readonly (infer Element)[]
  ? readonly DeepReadonly<Element>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;
