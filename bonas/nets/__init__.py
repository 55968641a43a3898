"""Neural networks as arrays: many architectures in one shape, and whole training runs in one compiled call."""

from bonas.nets.losses import accuracy as accuracy
from bonas.nets.losses import cross_entropy as cross_entropy
from bonas.nets.losses import error as error
from bonas.nets.losses import half_squared_error as half_squared_error
from bonas.nets.losses import squared_error as squared_error
from bonas.nets.many import train_many as train_many
from bonas.nets.mlp import MLP as MLP
from bonas.nets.mlp import Architecture as Architecture
from bonas.nets.mlp import Shape as Shape
from bonas.nets.mlp import apply as apply
from bonas.nets.mlp import architecture as architecture
from bonas.nets.mlp import stack as stack
from bonas.nets.optimisers import cosine as cosine
from bonas.nets.optimisers import inverse_time as inverse_time
from bonas.nets.optimisers import linear as linear
from bonas.nets.settings import Examples as Examples
from bonas.nets.settings import Hyper as Hyper
from bonas.nets.settings import Settings as Settings
from bonas.nets.settings import examples as examples
from bonas.nets.train import STATUSES as STATUSES
from bonas.nets.train import Result as Result
from bonas.nets.train import evaluate as evaluate
from bonas.nets.train import train as train
