"""Search spaces of named, possibly conditional parameters, encoded in the unit cube."""

from bonas.spaces.choice import Choice as Choice
from bonas.spaces.conditions import COMPARISONS as COMPARISONS
from bonas.spaces.conditions import Condition as Condition
from bonas.spaces.conditions import Terms as Terms
from bonas.spaces.conditions import When as When
from bonas.spaces.conditions import read_condition as read_condition
from bonas.spaces.lines import column_values as column_values
from bonas.spaces.lines import rows_along as rows_along
from bonas.spaces.numeric import Float as Float
from bonas.spaces.numeric import Int as Int
from bonas.spaces.ordinal import Ordinal as Ordinal
from bonas.spaces.parameter import Parameter as Parameter
from bonas.spaces.parameter_json import is_complete as is_complete
from bonas.spaces.parameter_json import option_from_json as option_from_json
from bonas.spaces.parameter_json import option_to_json as option_to_json
from bonas.spaces.parameter_json import parameter_from_json as parameter_from_json
from bonas.spaces.space import Space as Space
from bonas.spaces.table_space import TableSpace as TableSpace
