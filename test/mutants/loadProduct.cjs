// What a file computes when it is loaded belongs to no test: here it is loaded before the first.
require('../../nodes/MediaGeneration/MediaGeneration.node.ts');
require('../../nodes/MediaGeneration/MediaGenerationTrigger.node.ts');
require('../../nodes/MediaGeneration/MediaGenerationCredits.node.ts');
require('../../credentials/MediaGenerationApi.credentials.ts');
