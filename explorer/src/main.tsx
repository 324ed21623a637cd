import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api.ts';
import { loadWhenIdle } from './pages/later.ts';
import { router } from './router.tsx';
import './style/tokens.css';
import './style/elements.css';
import './style/shell.css';
import './style/search.css';
import './style/message.css';
import './style/lanes.css';

const root = document.getElementById('root');
if (!root) throw new Error('The page has no place for the app.');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
loadWhenIdle();
