// The compiler leaves everything that is not TypeScript behind; the program needs the migrations beside it.
import { cpSync } from 'node:fs';

cpSync('src/store/migrations', 'dist/store/migrations', { recursive: true });
