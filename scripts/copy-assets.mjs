// The compiler leaves everything that is not TypeScript behind; the program needs the migrations beside it.
import { cpSync } from 'node:fs';

cpSync('src/store/schema/migrations', 'dist/store/schema/migrations', { recursive: true });
