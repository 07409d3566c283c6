"""What the report tells of the papers' tables and figures beside today's libraries: ratios first,
then times. Each section takes the book and gives HTML, or nothing where nothing was measured.
(Models and their tables are in `fitted`, whole programs in `nas` and `pstswm`.)"""

from .common import UDP, WITHOUT, ours_to_best, seed, show
from .primitives import giving, saved
from .remote_write import mbcf
from .thesis import events, receives, udp
from .waits import waiting
